#include "fleetfit/elastic/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "elastic/bundle_format.h"
#include "fleetfit/core/file.h"
#include "fleetfit/graph/evaluate.h"
#include "tests/core/temporary_folder.h"
#include "tests/elastic/conv_supernet.h"
#include "tests/elastic/scaling_supernet.h"

namespace fleetfit::elastic {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The key pair of RFC 8410, section 10.
constexpr std::string_view kPrivateKey =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";
constexpr std::string_view kPublicKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
    "-----END PUBLIC KEY-----\n";
constexpr std::string_view kOtherPublicKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA/3VNizNlplJpBrk+oCMkh717JNqx5kIioIZrCgY8N1g=\n"
    "-----END PUBLIC KEY-----\n";

Bundle some_bundle() {
  return {.info = {.created_by = "fleetfit test",
                   .created = 1'700'000'000'000,
                   .data = "fashion-mnist",
                   .classes = {"shirt", "bag", "boot"},
                   .samples = {{.subnet = "o-s1", .accuracy = 0.75, .mac_share = 0.7}},
                   .model_bytes = 12345},
          .models = {conv_supernet()}};
}

class BundleFile : public ::testing::Test {
 protected:
  fs::path write(const Bundle& bundle) {
    const auto written = write_bundle(bundle, path_);
    EXPECT_TRUE(written) << written.error().message;
    return path_;
  }

  /// The message with which the file is refused, or "" if it is not.
  std::string refusal(const BundleReadOptions& options = {}) {
    const auto bundle = read_bundle(path_, options);
    if (bundle) return "";
    EXPECT_THAT(bundle.error().message, HasSubstr("bundle.ffb: "));
    return bundle.error().message;
  }

  void change_byte(std::size_t at, char change) {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const auto byte = static_cast<char>(file.get() ^ change);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }

  core::TemporaryFolder folder_;
  fs::path path_ = folder_.path() / "bundle.ffb";
};

// --- What was written is read ---

TEST_F(BundleFile, KeepsModelsBlocksAndBranches) {
  const auto bundle = some_bundle();
  const auto read = read_bundle(write(bundle)).value();
  ASSERT_EQ(read.models.size(), 1U);
  EXPECT_EQ(read.models[0].name, "conv");
  ASSERT_EQ(read.models[0].blocks.size(), 3U);
  for (std::size_t b = 0; b < 3; ++b) {
    const auto& expected = bundle.models[0].blocks[b];
    const auto& block = read.models[0].blocks[b];
    EXPECT_EQ(block.name, expected.name);
    ASSERT_EQ(block.branches.size(), expected.branches.size());
    for (std::size_t i = 0; i < block.branches.size(); ++i) {
      EXPECT_EQ(block.branches[i].kind, expected.branches[i].kind);
      EXPECT_EQ(block.branches[i].span, expected.branches[i].span);
      EXPECT_EQ(block.branches[i].share, expected.branches[i].share);
      EXPECT_EQ(first_difference(block.branches[i].graph, expected.branches[i].graph),
                std::nullopt);
    }
  }
}

TEST_F(BundleFile, KeepsWhatIsKnownOfIt) {
  const auto bundle = some_bundle();
  const auto read = read_bundle(write(bundle)).value();
  EXPECT_EQ(read.info.created_by, "fleetfit test");
  EXPECT_EQ(read.info.created, 1'700'000'000'000);
  EXPECT_EQ(read.info.data, "fashion-mnist");
  EXPECT_EQ(read.info.classes, bundle.info.classes);
  EXPECT_EQ(read.info.model_bytes, 12345);
  ASSERT_EQ(read.info.samples.size(), 1U);
  EXPECT_EQ(read.info.samples[0].subnet, "o-s1");
  EXPECT_EQ(read.info.samples[0].accuracy, 0.75);
  EXPECT_EQ(read.manifest_sha256.size(), 64U);
}

TEST_F(BundleFile, TheSameBundleIsTheSameFile) {
  const auto first = core::read_file(write(some_bundle())).value();
  EXPECT_EQ(core::read_file(write(some_bundle())).value(), first);
}

TEST_F(BundleFile, IsReadForAnyBatch) {
  write(some_bundle());
  const auto read = read_bundle(path_, {.batch = 5}).value();
  const auto network = SubnetSpace(read.models).lower(std::vector<space::Choice>{0, 1}).value();
  EXPECT_EQ(network.tensor(network.inputs[0]).shape, (graph::Shape{5, 2, 4, 4}));
  EXPECT_EQ(network.tensor(network.outputs[0]).shape, (graph::Shape{5, 3}));
  EXPECT_THAT(refusal({.batch = 0}), HasSubstr("a batch of 0"));
}

TEST_F(BundleFile, IsTheSameWhateverBatchItWasTrainedWith) {
  write(some_bundle());
  const auto trained = core::read_file(path_).value();
  auto large = read_bundle(path_, {.batch = 64}).value();
  write(large);
  EXPECT_EQ(core::read_file(path_).value(), trained);
}

TEST_F(BundleFile, OfAModelWithAFixedBatchSaysSo) {
  Bundle bundle = some_bundle();
  graph::NetBuilder net("head", 9);
  const auto x = net.input("x", {1, 2, 4, 4});
  net.output(net.linear(net.reshape(x, {1, 32}), 3), "classes");
  bundle.models[0].blocks[2].branches[0].graph = std::move(net).finish().value();
  write(bundle);
  EXPECT_EQ(refusal(), "");
  EXPECT_THAT(refusal({.batch = 4}), HasSubstr("model conv takes 1 at a time, not 4"));
}

TEST_F(BundleFile, WeightsAreUsedWhereTheFileHasThem) {
  const auto read = read_bundle(write(some_bundle())).value();
  std::size_t weights = 0;
  for (const auto& tensor : read.models[0].blocks[0].branches[0].graph.tensors) {
    if (!tensor.data) continue;
    // A copy would be aligned to 16 bytes only.
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data->bytes().data()) % 64, 0U);
    ++weights;
  }
  EXPECT_EQ(weights, 10U);
}

TEST_F(BundleFile, OutlivesTheReplacementOfItsFile) {
  const auto read = read_bundle(write(some_bundle())).value();
  ASSERT_TRUE(core::write_file(path_, "something else"));
  EXPECT_EQ(first_difference(read.models[0].blocks[1].branches[2].graph, two_convolutions(1, 6)),
            std::nullopt);
}

TEST_F(BundleFile, HoldsEqualBlocksOnce) {
  Bundle bundle = some_bundle();
  bundle.info.samples.clear();
  const auto one = verify_bundle(write(bundle)).value();
  EXPECT_EQ(one.sections.size(), 7U);
  bundle.models.push_back(conv_supernet("again"));
  bundle.models[1].blocks[1].branches[0].graph = two_convolutions(4, 77);
  EXPECT_EQ(verify_bundle(write(bundle)).value().sections.size(), 8U);
}

TEST_F(BundleFile, SectionsBeginOnPages) {
  const auto check = verify_bundle(write(some_bundle())).value();
  EXPECT_EQ(check.version, 1);
  EXPECT_EQ(check.bytes, fs::file_size(path_));
  EXPECT_EQ(check.sections[1].name, "conv/block 0/s1");
  for (const auto& section : check.sections) EXPECT_EQ(section.offset % 4096, 0U) << section.name;
  EXPECT_EQ(check.sections.back().offset + check.sections.back().bytes, check.bytes);
}

TEST_F(BundleFile, SamplesAreOfSubnetsThatThereAre) {
  Bundle bundle = some_bundle();
  bundle.info.samples[0].subnet = "o-s9";
  EXPECT_THAT(write_bundle(bundle, path_).error().message, HasSubstr("sample 'o-s9'"));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(BundleFile, SeveralModelsNeedNamesThatTextsOfSubnetsCanHold) {
  Bundle bundle{.models = {conv_supernet("a:b")}};
  EXPECT_TRUE(write_bundle(bundle, path_));
  bundle.models.push_back(conv_supernet("c"));
  EXPECT_THAT(write_bundle(bundle, path_).error().message, HasSubstr("'a:b'"));
}

// --- Damage ---

/// A bundle as small as can be: a network that multiplies, with a few bytes for each branch.
Bundle small_bundle() {
  Bundle bundle{.models = {scaling_supernet()}};
  bundle.models[0].blocks[0].branches.resize(2);
  return bundle;
}

TEST_F(BundleFile, WithAnyByteChangedIsRefused) {
  write(small_bundle());
  const auto check = verify_bundle(path_).value();
  std::vector<bool> has_content(check.bytes);
  const auto header_and_manifest =
      128 + parse_header(core::read_file(path_).value())->manifest_bytes;
  std::fill_n(has_content.begin(), header_and_manifest, true);
  for (const auto& s : check.sections)
    std::fill_n(has_content.begin() + static_cast<std::ptrdiff_t>(s.offset), s.bytes, true);

  for (std::size_t at = 0; at < check.bytes; ++at) {
    if (!has_content[at] && at % 64 != 0) continue;  // of what is empty some bytes will do
    const char change = static_cast<char>(1 << at % 8);
    change_byte(at, change);
    EXPECT_FALSE(read_bundle(path_)) << "byte " << at;
    change_byte(at, change);
  }
  EXPECT_EQ(refusal(), "");
}

TEST_F(BundleFile, CutShortAnywhereIsRefused) {
  write(small_bundle());
  const auto whole = core::read_file(path_).value();
  const auto check = verify_bundle(path_).value();
  std::vector<std::size_t> lengths = {0, 1, 7, 8, 127, 128, 129, 128 + 500};
  for (const auto& section : check.sections) {
    for (const std::size_t edge : {section.offset, section.offset + section.bytes})
      lengths.insert(lengths.end(), {edge - 1, edge, edge + 1});
  }
  for (const auto length : lengths) {
    if (length == whole.size()) continue;
    auto cut = whole;
    cut.resize(length);  // also one byte too many
    ASSERT_TRUE(core::write_file(path_, cut, core::Durability::scratch));
    EXPECT_NE(refusal(), "") << length << " bytes of " << whole.size();
  }
}

TEST_F(BundleFile, SaysWhatIsWrong) {
  write(small_bundle());
  const auto check = verify_bundle(path_).value();
  change_byte(check.sections[1].offset + 9, 1);
  EXPECT_THAT(refusal(), HasSubstr("checksum of section 'scaling/block 0/s1' is wrong"));
  EXPECT_EQ(verify_bundle(path_).error().message, refusal());

  write(small_bundle());
  change_byte(200, 1);
  EXPECT_THAT(refusal(), HasSubstr("checksum of its manifest is wrong"));

  ASSERT_TRUE(core::write_file(path_, "GIF89a"));
  EXPECT_THAT(refusal(), HasSubstr("it is no bundle"));
  EXPECT_EQ(read_bundle(folder_.path() / "none.ffb").error().code, ErrorCode::not_found);
}

TEST_F(BundleFile, OfANewerVersionIsRefusedByIt) {
  write(small_bundle());
  change_byte(8, 1 ^ 7);
  EXPECT_THAT(refusal(), HasSubstr("it has version 7 of the format"));
}

// --- Signatures ---

class SignedBundle : public BundleFile {
 protected:
  fs::path private_key_ = folder_.file("private.pem", kPrivateKey);
  fs::path public_key_ = folder_.file("public.pem", kPublicKey);
  fs::path other_key_ = folder_.file("other.pem", kOtherPublicKey);
};

TEST_F(SignedBundle, IsTakenByTheOwnersOfTheKey) {
  write(small_bundle());
  const auto before = read_bundle(path_).value();
  EXPECT_EQ(verify_bundle(path_).value().signature, "none");
  ASSERT_TRUE(sign_bundle(path_, private_key_));
  EXPECT_EQ(verify_bundle(path_).value().signature, "not checked");
  EXPECT_EQ(verify_bundle(path_, {.public_key = public_key_}).value().signature, "valid");
  EXPECT_EQ(read_bundle(path_, {.public_key = public_key_}).value().manifest_sha256,
            before.manifest_sha256);
}

TEST_F(SignedBundle, IsRefusedWithAnotherKey) {
  write(small_bundle());
  EXPECT_THAT(refusal({.public_key = public_key_}), HasSubstr("it is not signed"));
  ASSERT_TRUE(sign_bundle(path_, private_key_));
  EXPECT_THAT(refusal({.public_key = other_key_}), HasSubstr("not by the key"));
}

TEST_F(SignedBundle, IsRefusedWithADamagedSignature) {
  write(small_bundle());
  ASSERT_TRUE(sign_bundle(path_, private_key_));
  for (std::size_t at = 56; at < 56 + 64; ++at) {
    change_byte(at, 4);
    EXPECT_THAT(refusal({.public_key = public_key_}), HasSubstr("not by the key")) << at;
    change_byte(at, 4);
  }
  change_byte(12, 1);  // says that there is no signature
  EXPECT_THAT(refusal(), HasSubstr("header is damaged"));
}

TEST_F(SignedBundle, NeedsKeysOfTheRightKind) {
  write(small_bundle());
  const auto refused = [&](const fs::path& key) { return sign_bundle(path_, key).error().message; };
  EXPECT_THAT(refused(public_key_), HasSubstr("no private Ed25519 key"));
  EXPECT_THAT(refused(folder_.file("empty.pem", "")), HasSubstr("no private Ed25519 key"));
  EXPECT_THAT(refused(folder_.path() / "none.pem"), HasSubstr("none.pem"));
  ASSERT_TRUE(sign_bundle(path_, private_key_));
  EXPECT_THAT(refusal({.public_key = private_key_}), HasSubstr("no public Ed25519 key"));
}

// --- Manifests and sections that do not belong together ---

/// A manifest with the sections that it speaks of, as a writer might have made them.
class Parts : public BundleFile {
 protected:
  void SetUp() override {
    file_ = core::read_file(write(some_bundle())).value();
    const auto header = parse_header(file_).value();
    manifest_ =
        parse_manifest(std::string_view(file_).substr(128, header.manifest_bytes), "m").value();
    for (const auto& section : manifest_.sections) {
      const auto from = sections_begin(header) + section.offset;
      source_.sections.push_back(std::as_bytes(std::span(file_).subspan(from, section.bytes)));
    }
  }

  std::string parse_error() {
    return parse_manifest(format_manifest(manifest_), "m").error().message;
  }
  std::string read_error() { return read_models(manifest_, source_, 1).error().message; }
  BranchEntry& branch(std::size_t block, std::size_t index) {
    return manifest_.models[0].blocks[block].branches[index];
  }

  std::string file_;
  Manifest manifest_;
  SectionSource source_;
};

TEST_F(Parts, OverlappingSectionsAreRefused) {
  manifest_.sections[2].offset -= kPageBytes;
  EXPECT_THAT(parse_error(), HasSubstr("section 'conv/block 0/m1' begins at 4096"));
}

TEST_F(Parts, SectionsOffThePagesAreRefused) {
  manifest_.sections[2].offset += 64;
  EXPECT_THAT(parse_error(), HasSubstr("section 'conv/block 0/m1' begins at 8256"));
}

TEST_F(Parts, FieldsOutOfRangeAreNamed) {
  branch(1, 1).section = 99;
  EXPECT_EQ(parse_error(), "m: models[0].blocks[1].branches[1]: there is no section 99");
  branch(1, 1).section = 0;
  branch(0, 1).share = 1.5;
  EXPECT_EQ(parse_error(),
            "m: models[0].blocks[0].branches[1].share: is 1.5, not above 0 and up to 1");
  branch(0, 1).share = 0.5;
  branch(0, 0).inputs[0].shape = {kBatch, kBatch};
  EXPECT_THAT(parse_error(), HasSubstr("only the first extent can be open"));
}

TEST_F(Parts, ABranchThatIsNotWhatTheManifestSaysIsRefused) {
  branch(2, 0).section = 0;
  EXPECT_THAT(read_error(), HasSubstr("not of the type and shape that the manifest says"));
}

TEST_F(Parts, BranchesThatDoNotFitTheirNeighboursAreRefused) {
  branch(1, 1) = branch(2, 0);
  EXPECT_THAT(read_error(), HasSubstr("block 1 (second)"));
}

TEST_F(Parts, SpansBeyondTheLastBlockAreRefused) {
  branch(0, 2).span = 4;
  EXPECT_THAT(read_error(), HasSubstr("blocks beyond the last"));
}

TEST_F(Parts, ASectionThatIsNoModelIsNamed) {
  source_.sections[3] = source_.sections[3].first(100);
  EXPECT_THAT(read_error(), HasSubstr("section 'conv/block 1/o'"));
}

TEST_F(Parts, TellWhatBranchesCost) {
  // Two 3x3 convolutions between 2 and 4 channels on 4x4 images; batch-norm has scale and shift.
  EXPECT_EQ(branch(0, 0).macs, 2 * 9 * 2 * 4 * 16);
  EXPECT_EQ(branch(0, 0).params, 2 * 9 * 2 * 4 + 2 * (4 + 2));
  EXPECT_EQ(branch(2, 0).macs, 2 * 3);
  EXPECT_EQ(branch(2, 0).outputs[0].shape, (std::vector<std::int64_t>{kBatch, 3}));
}

}  // namespace
}  // namespace fleetfit::elastic
