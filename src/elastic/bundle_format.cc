#include "elastic/bundle_format.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"

namespace fleetfit::elastic {
namespace {

// The first byte is no text, and line ends that get translated on the way are noticed.
constexpr std::string_view kMagic =
    "\x89"
    "FFB\r\n\x1a\n";
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kSignatureKindAt = 12;
constexpr std::size_t kManifestBytesAt = 16;
constexpr std::size_t kManifestHashAt = 24;
constexpr std::size_t kHashBytes = 32;
constexpr std::size_t kSignatureAt = kManifestHashAt + kHashBytes;

constexpr std::uint64_t kUnsigned = 0;
constexpr std::uint64_t kEd25519 = 1;

void put(std::string& header, std::size_t at, std::size_t bytes, std::uint64_t value) {
  for (std::size_t i = 0; i < bytes; ++i) header[at + i] = static_cast<char>(value >> 8 * i & 0xff);
}

std::uint64_t get(std::string_view header, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(header[at + i])} << 8 * i;
  return value;
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

std::string from_hex(std::string_view hex) {
  std::string bytes(hex.size() / 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, value, 16);
    bytes[i] = static_cast<char>(value);
  }
  return bytes;
}

bool all_zero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == '\0'; });
}

using core::JsonView;
using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "fleetfit-bundle";
constexpr std::string_view kOpen = "N";  // the extent that stands for the batch

// Far beyond what real bundles have; they keep a manifest of few bytes from asking for much.
constexpr std::size_t kMostModels = 64;
constexpr std::size_t kMostBlocks = 4096;
constexpr std::size_t kMostBranches = 64;
constexpr std::size_t kMostSections = 65536;
constexpr std::size_t kMostTensors = 256;
constexpr std::size_t kMostDimensions = 16;
constexpr std::int64_t kMostExtent = std::int64_t{1} << 32;
constexpr double kMostBytes = static_cast<double>(std::int64_t{1} << 46);
constexpr std::size_t kMostSamples = 100'000;

Json write_shape(const TensorEntry& tensor) {
  Json shape = Json::array();
  for (const auto extent : tensor.shape)
    shape.push_back(extent == kBatch ? Json(kOpen) : Json(extent));
  return shape;
}

Result<std::int64_t> read_extent(const JsonView& view) {
  if (view.value().is_string() && view.value() == kOpen) return kBatch;
  return view.as_integer({.min = 1, .max = kMostExtent});
}

Status read_shape(const JsonView& view, TensorEntry& tensor) {
  FLEETFIT_ASSIGN(const auto items, view.items());
  if (items.size() > kMostDimensions)
    return view.error(fmt::format("has more than {} elements", kMostDimensions));
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(const auto extent, read_extent(item));
    if (extent == kBatch && !tensor.shape.empty())
      return view.error("only the first extent can be open");
    tensor.shape.push_back(extent);
  }
  return {};
}

/// Each section begins on the first page after the one before, so that they neither overlap nor
/// hide anything between them.
Status check_layout(const JsonView& view, const std::vector<BundleSection>& sections) {
  std::uint64_t end = 0;
  for (const auto& section : sections) {
    if (section.offset != page_after(end)) {
      return view.error(
          fmt::format("section '{}' begins at {}, where {} is the first page after the one before",
                      section.name, section.offset, page_after(end)));
    }
    end = section.offset + section.bytes;
  }
  return {};
}

Status check_sections_of(const ModelEntry& model, std::size_t sections) {
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    const auto& branches = model.blocks[b].branches;
    const auto unknown = std::ranges::find_if(
        branches, [&](const BranchEntry& branch) { return branch.section >= sections; });
    if (unknown != branches.end()) {
      return refuse(fmt::format("blocks[{}].branches[{}]: there is no section {}", b,
                                unknown - branches.begin(), unknown->section));
    }
  }
  return {};
}

Status check_sections(const JsonView& view, const Manifest& manifest) {
  for (std::size_t m = 0; m < manifest.models.size(); ++m) {
    const auto checked = check_sections_of(manifest.models[m], manifest.sections.size());
    if (!checked) return view.error(fmt::format("models[{}].{}", m, checked.error().message));
  }
  return {};
}

constexpr std::uint64_t kMostKeyBytes = 65536;

template <auto free>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Context = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;

// Without this, OpenSSL asks for a passphrase on the terminal.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

/// `read` is OpenSSL's function for the wanted half of a key.
template <class Read>
Result<Key> read_key(const std::filesystem::path& file, std::string_view half, Read read) {
  FLEETFIT_ASSIGN(const auto text,
                  core::read_file(file, {.max_bytes = kMostKeyBytes,
                                         .special_files = core::SpecialFiles::allow}));
  const Bio memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  Key key(read(memory.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (!key || EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519) {
    return refuse(fmt::format("{}: it holds no {} Ed25519 key in PEM without a passphrase",
                              file.string(), half));
  }
  return key;
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::uint64_t page_after(std::uint64_t offset) {
  return (offset + kPageBytes - 1) / kPageBytes * kPageBytes;
}

std::uint64_t sections_begin(const BundleHeader& header) {
  return page_after(kHeaderBytes + header.manifest_bytes);
}

std::string format_header(const BundleHeader& header) {
  std::string bytes(kHeaderBytes, '\0');
  bytes.replace(0, kMagic.size(), kMagic);
  put(bytes, kVersionAt, 4, kBundleVersion);
  put(bytes, kSignatureKindAt, 4, header.signature ? kEd25519 : kUnsigned);
  put(bytes, kManifestBytesAt, 8, header.manifest_bytes);
  bytes.replace(kManifestHashAt, kHashBytes, from_hex(header.manifest_sha256));
  if (header.signature)
    std::copy(header.signature->begin(), header.signature->end(), bytes.begin() + kSignatureAt);
  return bytes;
}

Result<BundleHeader> parse_header(std::string_view file) {
  if (!file.starts_with(kMagic)) return refuse("it is no bundle of fleetfit");
  if (file.size() < kHeaderBytes) return refuse("it is cut short: its header is not whole");
  const auto version = get(file, kVersionAt, 4);
  if (version > kBundleVersion) {
    return refuse(
        fmt::format("it has version {} of the format, and this program knows only {}: a newer "
                    "fleetfit can read it",
                    version, kBundleVersion));
  }
  if (version < 1) return refuse("its header is damaged");
  BundleHeader header{
      .manifest_bytes = get(file, kManifestBytesAt, 8),
      .manifest_sha256 = to_hex(file.substr(kManifestHashAt, kHashBytes)),
  };
  const auto kind = get(file, kSignatureKindAt, 4);
  std::size_t used = kSignatureAt;
  if (kind == kEd25519) {
    const auto signature = file.substr(kSignatureAt, sizeof(Signature));
    std::ranges::copy(signature, header.signature.emplace().begin());
    used += signature.size();
  } else if (kind != kUnsigned) {
    return refuse(fmt::format("it has a signature of the unknown kind {}", kind));
  }
  if (!all_zero(file.substr(used, kHeaderBytes - used))) return refuse("its header is damaged");
  return header;
}

core::Fields fields_of(const AccuracySample*) {
  static constexpr core::Field kAll[] = {
      core::field<&AccuracySample::subnet>("subnet"),
      core::field<&AccuracySample::accuracy>("accuracy").between(0, 1),
      core::field<&AccuracySample::mac_share>("mac_share").from(0),
      core::field<&AccuracySample::mean_iou>("mean_iou").between(0, 1).omit_default()};
  return {.all = kAll};
}

core::Fields fields_of(const BundleInfo*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(BundleInfo, created_by, created, data, classes),
      core::field<&BundleInfo::samples>("samples").at_most(kMostSamples),
      core::field<&BundleInfo::model_bytes>("model_bytes").from(0)};
  return {.all = kAll};
}

core::Fields fields_of(const BundleSection*) {
  static constexpr core::Field kAll[] = {
      core::field<&BundleSection::name>("name"),
      core::field<&BundleSection::offset>("offset").up_to(kMostBytes),
      core::field<&BundleSection::bytes>("bytes").up_to(kMostBytes),
      core::field<&BundleSection::sha256>("sha256").hash()};
  return {.all = kAll};
}

core::Fields fields_of(const TensorEntry*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(TensorEntry, name, type),
      core::field_by<TensorEntry, read_shape, write_shape>("shape")};
  return {.all = kAll};
}

core::Fields fields_of(const BranchEntry*) {
  static constexpr core::Field kAll[] = {
      core::field<&BranchEntry::kind>("kind"),
      core::field<&BranchEntry::span>("span").between(1, kMostBlocks),
      core::field<&BranchEntry::share>("share").above(0).up_to(1),
      core::field<&BranchEntry::section>("section"),
      core::field<&BranchEntry::inputs>("inputs").at_most(kMostTensors),
      core::field<&BranchEntry::outputs>("outputs").at_most(kMostTensors),
      core::field<&BranchEntry::macs>("macs").from(0),
      core::field<&BranchEntry::params>("params").from(0),
      core::field<&BranchEntry::weight_bytes>("weight_bytes").from(0)};
  return {.all = kAll};
}

core::Fields fields_of(const BlockEntry*) {
  static constexpr core::Field kAll[] = {
      core::field<&BlockEntry::name>("name"),
      core::field<&BlockEntry::branches>("branches").at_most(kMostBranches)};
  return {.all = kAll};
}

core::Fields fields_of(const ModelEntry*) {
  static constexpr core::Field kAll[] = {
      core::field<&ModelEntry::name>("name"),
      core::field<&ModelEntry::blocks>("blocks").at_most(kMostBlocks)};
  return {.all = kAll};
}

core::Fields fields_of(const Manifest*) {
  static constexpr core::Field kAll[] = {
      core::field<&Manifest::info>("info").inlined(),
      core::field<&Manifest::sections>("sections").at_most(kMostSections),
      core::field<&Manifest::models>("models").at_most(kMostModels)};
  return {.all = kAll};
}

std::string format_manifest(const Manifest& manifest) {
  auto json = core::to_json<nlohmann::json>(manifest);
  json["format"] = kFormat;
  json["version"] = kBundleVersion;
  return core::format_json_line(json);
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view name) {
  FLEETFIT_ASSIGN(const auto json, core::parse_json(text, name));
  const JsonView view(json, std::string(name));
  if (const auto format = view.text("format"); !format || *format != kFormat)
    return view.error("it is no manifest of a bundle");
  if (const auto version = view.integer("version"); !version || *version != kBundleVersion)
    return view.error("its version is not that of the header");
  FLEETFIT_ASSIGN(auto manifest, core::read<Manifest>(view));
  FLEETFIT_TRY(check_layout(view, manifest.sections));
  FLEETFIT_TRY(check_sections(view, manifest));
  return manifest;
}

Result<Signature> sign(std::string_view message, const std::filesystem::path& private_key) {
  FLEETFIT_ASSIGN(const auto key, read_key(private_key, "private", PEM_read_bio_PrivateKey));
  const Context context(EVP_MD_CTX_new());
  Signature signature{};
  std::size_t size = signature.size();
  const bool done =
      context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestSign(context.get(), signature.data(), &size, bytes_of(message), message.size()) ==
          1;
  ERR_clear_error();
  if (!done || size != signature.size())
    return fail(ErrorCode::internal, fmt::format("{}: OpenSSL cannot sign", private_key.string()));
  return signature;
}

Status check_signature(std::string_view message, const Signature& signature,
                       const std::filesystem::path& public_key) {
  FLEETFIT_ASSIGN(const auto key, read_key(public_key, "public", PEM_read_bio_PUBKEY));
  const Context context(EVP_MD_CTX_new());
  const bool valid =
      context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), signature.data(), signature.size(), bytes_of(message),
                       message.size()) == 1;
  ERR_clear_error();
  if (!valid) {
    return refuse(fmt::format("its signature is not by the key {}", public_key.string()));
  }
  return {};
}

}  // namespace fleetfit::elastic
