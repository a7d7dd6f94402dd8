#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "agent/job_file.h"
#include "fleetfit/adapt/pool.h"
#include "fleetfit/agent/agent.h"
#include "fleetfit/app/bundles.h"
#include "fleetfit/app/models.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/sha256.h"
#include "tests/core/fake_clock.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::agent {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct KeyPair {
  std::filesystem::path secret;
  std::filesystem::path open;
};

KeyPair write_keys(const std::filesystem::path& folder, const std::string& name) {
  const KeyPair files{folder / (name + ".secret.pem"), folder / (name + ".pem")};
  EVP_PKEY* pair = ::EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  std::FILE* file = std::fopen(files.secret.c_str(), "w");
  ::PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  file = std::fopen(files.open.c_str(), "w");
  ::PEM_write_PUBKEY(file, pair);
  std::fclose(file);
  ::EVP_PKEY_free(pair);
  return files;
}

/// A job in this process, whose files are in the cache already.
class JobTest : public testing::Test {
 protected:
  JobTest() { options_.state = folder_.path() / "state"; }

  std::filesystem::path make_bundle() {
    const auto model = folder_.path() / "net.onnx";
    const auto bundle = folder_.path() / "net.ffb";
    EXPECT_TRUE(app::write_zoo_network("resnet20", model,
                                       {.width = 0.25, .classes = 3, .image = 8, .channels = 1}));
    EXPECT_TRUE(app::draft_bundle(model, {}, clock_, bundle));
    return bundle;
  }

  std::string put_into_cache(const std::filesystem::path& file) {
    const auto content = core::read_file(file).value();
    const auto hash = core::sha256_hex(content);
    std::filesystem::create_directories(options_.state / "files");
    EXPECT_TRUE(core::write_file(options_.state / "files" / hash, content));
    return hash;
  }

  json outcome_of(fleet::JobRequest request) {
    const auto job = folder_.path() / "job";
    EXPECT_TRUE(
        write_job_file(job, {.assignment = {.attempt = {1, 1}, .request = std::move(request)},
                             .device = "pi4",
                             .options = options_}));
    const auto connection =
        connection_text({.server = "http://127.0.0.1:1", .token = "t", .device = "pi4"});
    std::vector<json> lines;
    const auto done =
        do_job(job, connection, clock_,
               [&](std::string_view line) { lines.push_back(json::parse(line)); }, {});
    EXPECT_TRUE(done);
    EXPECT_EQ(lines.back().value("line", ""), "outcome");
    return lines.back();
  }
  std::string failure_of(fleet::JobRequest request) {
    const auto outcome = outcome_of(std::move(request));
    EXPECT_FALSE(outcome["finished"]);
    return outcome["reason"];
  }

  core::TemporaryFolder folder_;
  core::FakeClock clock_;
  JobOptions options_;
};

TEST_F(JobTest, ABundleThatNobodySignedIsRefusedWhereAKeyIsAskedFor) {
  const auto bundle = make_bundle();
  const auto right = write_keys(folder_.path(), "right");
  const auto wrong = write_keys(folder_.path(), "wrong");
  options_.public_key = right.open;
  EXPECT_THAT(failure_of(fleet::DeployJob{.bundle = put_into_cache(bundle)}), HasSubstr("sign"));
  ASSERT_TRUE(app::sign_bundle(bundle, wrong.secret));
  EXPECT_THAT(failure_of(fleet::DeployJob{.bundle = put_into_cache(bundle)}), HasSubstr("sign"));
  EXPECT_THAT(failure_of(fleet::ProfileJob{.bundle = put_into_cache(bundle)}), HasSubstr("sign"));
  ASSERT_TRUE(app::sign_bundle(bundle, right.secret));
  const auto hash = put_into_cache(bundle);
  const auto outcome = outcome_of(fleet::DeployJob{.bundle = hash});
  EXPECT_TRUE(outcome["finished"]) << outcome;
  EXPECT_EQ(outcome["result"]["signature"], "valid");
  EXPECT_TRUE(std::filesystem::exists(options_.state / "deployed" / hash));
}

TEST_F(JobTest, APoolIsTakenOnlyForItsBundle) {
  const auto bundle = put_into_cache(make_bundle());
  const auto shown = app::show_bundle(options_.state / "files" / bundle).value();
  const auto file = folder_.path() / "pool.json";
  adapt::SubnetPool pool{.device = "pi4",
                         .bundle_sha256 = shown.manifest_sha256,
                         .budget_ms = 5,
                         .best = shown.original,
                         .entries = {{.subnet = shown.original, .latency_ms = 1, .accuracy = 0.5}}};
  ASSERT_TRUE(adapt::write_pool(pool, file));
  const auto outcome = outcome_of(fleet::DeployJob{.bundle = bundle, .pool = put_into_cache(file)});
  EXPECT_TRUE(outcome["finished"]) << outcome;
  const auto kept = options_.state / "pools" / (bundle + ".json");
  EXPECT_EQ(adapt::read_pool(kept).value().best, shown.original);

  pool.bundle_sha256 = std::string(64, '0');
  ASSERT_TRUE(adapt::write_pool(pool, file));
  EXPECT_THAT(failure_of(fleet::DeployJob{.bundle = bundle, .pool = put_into_cache(file)}),
              HasSubstr("another bundle"));
}

TEST_F(JobTest, WithoutAPoolThereIsNothingToRun) {
  const auto bundle = put_into_cache(make_bundle());
  EXPECT_THAT(failure_of(fleet::RunJob{.bundle = bundle, .data = "d", .budget_ms = 5}),
              HasSubstr("adapt or deploy"));
}

TEST_F(JobTest, AFileThatCannotBeReadIsAFailedJob) {
  const auto nonsense = put_into_cache(folder_.file("nonsense", "this is no model"));
  EXPECT_THAT(failure_of(fleet::DeployJob{.bundle = nonsense}), HasSubstr("bundle"));
  EXPECT_THAT(failure_of(fleet::MeasureJob{.model = nonsense, .name = "a.onnx"}),
              HasSubstr("a.onnx"));
}

TEST_F(JobTest, NoProgramIsRunThatAJobNamesUnlessItIsAllowed) {
  const auto model = put_into_cache(folder_.file("m", "x"));
  EXPECT_THAT(failure_of(fleet::MeasureJob{
                  .model = model, .name = "a.onnx", .settings = {.runtime = "exec:/bin/true"}}),
              HasSubstr("--allow-exec"));
}

TEST_F(JobTest, AFolderWithoutAJobIsAnError) {
  const auto done = do_job(folder_.path(), "{}", clock_, [](std::string_view) {}, {});
  EXPECT_THAT(done.error().message, HasSubstr("job.json"));
}

}  // namespace
}  // namespace fleetfit::agent
