#include "agent/file_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/core/file.h"
#include "fleetfit/core/sha256.h"
#include "tests/agent/fake_fleet.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::agent {
namespace {

using testing::HasSubstr;

class FileCacheTest : public testing::Test {
 protected:
  FileCacheTest() {
    server_.on_download =
        [this](std::string_view hash,
               const std::filesystem::path& file) -> tl::expected<void, fleet::CallError> {
      for (const auto& content : contents_) {
        if (core::sha256_hex(content) != hash) continue;
        EXPECT_TRUE(core::write_file(file, content));
        return {};
      }
      return tl::unexpected(fleet::CallError{.status = 404, .message = "there is no such file"});
    };
  }

  FileCache cache(std::int64_t most_bytes = 1000, std::set<std::string, std::less<>> pinned = {}) {
    return FileCache({.folder = folder_.path(),
                      .most_bytes = most_bytes,
                      .pinned = std::move(pinned),
                      .sleep =
                          [this](std::chrono::milliseconds, const std::stop_token&) {
                            ++sleeps_;
                            if (sleeps_ == back_after_) server_.failure.reset();
                            return true;
                          }},
                     server_);
  }
  std::string put(std::string content) {
    contents_.push_back(content);
    return core::sha256_hex(content);
  }
  bool has(const std::string& hash) const { return std::filesystem::exists(folder_.path() / hash); }

  core::TemporaryFolder folder_;
  FakeServer server_;
  std::vector<std::string> contents_;
  int sleeps_ = 0;
  int back_after_ = 0;
};

TEST_F(FileCacheTest, GetsAFileOnce) {
  const auto hash = put("model");
  EXPECT_EQ(core::read_file(cache().fetch(hash, {}).value()).value(), "model");
  ASSERT_TRUE(cache().fetch(hash, {}));
  EXPECT_EQ(server_.downloads, 1);
}

TEST_F(FileCacheTest, GetsAFileAgainThatTheDiskHasDamaged) {
  const auto hash = put("model");
  ASSERT_TRUE(cache().fetch(hash, {}));
  ASSERT_TRUE(core::write_file(folder_.path() / hash, "mOdel"));
  EXPECT_EQ(core::read_file(cache().fetch(hash, {}).value()).value(), "model");
  EXPECT_EQ(server_.downloads, 2);
}

TEST_F(FileCacheTest, TriesAgainWhileTheServerIsAway) {
  const auto hash = put("model");
  server_.failure = fleet::CallError{.message = "no route"};
  back_after_ = 4;
  EXPECT_TRUE(cache().fetch(hash, {}));
  EXPECT_EQ(sleeps_, 4);
}

TEST_F(FileCacheTest, GivesUpAtOnceWhenTheServerRefuses) {
  const auto file = cache().fetch(std::string(64, 'a'), {});
  EXPECT_THAT(file.error().message, HasSubstr("there is no such file"));
  EXPECT_EQ(sleeps_, 0);
}

TEST_F(FileCacheTest, ForgetsWhatWasNotUsedForLongest) {
  const auto old = put(std::string(400, 'a'));
  const auto used = put(std::string(400, 'b'));
  const auto fresh = put(std::string(400, 'c'));
  ASSERT_TRUE(cache().fetch(used, {}));
  ASSERT_TRUE(cache().fetch(old, {}));
  const auto now = std::filesystem::last_write_time(folder_.path() / old);
  std::filesystem::last_write_time(folder_.path() / old, now - std::chrono::hours(2));
  ASSERT_TRUE(cache().fetch(fresh, {}));
  EXPECT_FALSE(has(old));
  EXPECT_TRUE(has(used));
  EXPECT_TRUE(has(fresh));
}

TEST_F(FileCacheTest, KeepsWhatIsDeployedBeforeOthers) {
  const auto deployed = put(std::string(400, 'a'));
  const auto other = put(std::string(400, 'b'));
  const auto fresh = put(std::string(400, 'c'));
  ASSERT_TRUE(cache().fetch(deployed, {}));
  ASSERT_TRUE(cache().fetch(other, {}));
  const auto now = std::filesystem::last_write_time(folder_.path() / other);
  std::filesystem::last_write_time(folder_.path() / deployed, now - std::chrono::hours(2));
  ASSERT_TRUE(cache(1000, {deployed}).fetch(fresh, {}));
  EXPECT_TRUE(has(deployed));
  EXPECT_FALSE(has(other));
}

TEST_F(FileCacheTest, RefusesAFileThatIsLargerThanItself) {
  const auto hash = put(std::string(1001, 'a'));
  EXPECT_THAT(cache().fetch(hash, {}).error().message, HasSubstr("room for 1000"));
  EXPECT_FALSE(has(hash));
}

TEST_F(FileCacheTest, TakesNothingForAFileThatIsNoHash) {
  EXPECT_FALSE(cache().fetch("../secret", {}));
  EXPECT_EQ(server_.downloads, 0);
}

}  // namespace
}  // namespace fleetfit::agent
