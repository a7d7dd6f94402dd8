#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "fleetfit/core/file.h"
#include "fleetfit/core/move_file.h"
#include "tests/core/temporary_folder.h"

namespace {

std::vector<std::string>& synced() {
  static std::vector<std::string> names;
  return names;
}

/// Other tests of this program write files by several threads at once.
std::mutex& note_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

/// Stands before the system's: notes what is put to the disk.
extern "C" int fsync(int fd) {
  std::error_code ignored;
  const auto name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored);
  {
    const std::scoped_lock lock(note_mutex());
    synced().push_back(name.string());
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace fleetfit::core {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;

class FileSync : public testing::Test {
 protected:
  void SetUp() override { synced().clear(); }

  TemporaryFolder folder_;
  const std::filesystem::path root_ = std::filesystem::canonical(folder_.path());
};

TEST_F(FileSync, ANewNameIsOnTheDiskWithItsFolder) {
  folder_.file("a", "content");
  ASSERT_TRUE(move_file(root_ / "a", root_ / "b"));
  EXPECT_THAT(synced(), Contains(root_.string()));
  EXPECT_EQ(read_file(root_ / "b"), "content");
  EXPECT_FALSE(std::filesystem::exists(root_ / "a"));
}

TEST_F(FileSync, AFolderThatIsMadeForItIsOnTheDiskToo) {
  folder_.file("a", "content");
  ASSERT_TRUE(move_file(root_ / "a", root_ / "ab" / "abcd"));
  EXPECT_THAT(synced(), IsSupersetOf({root_.string(), (root_ / "ab").string()}));
  EXPECT_EQ(read_file(root_ / "ab" / "abcd"), "content");
}

TEST_F(FileSync, AWrittenFileIsThereWithItsName) {
  ASSERT_TRUE(write_file(root_ / "c", "content"));
  EXPECT_THAT(synced(), Contains(root_.string()));
  synced().clear();
  ASSERT_TRUE(write_file(root_ / "d", "content", Durability::scratch));
  EXPECT_TRUE(synced().empty());
}

TEST_F(FileSync, WhatCannotBeMovedIsNamed) {
  const auto missing = move_file(root_ / "nothing", root_ / "b");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  folder_.file("file", "");
  folder_.file("a", "");
  EXPECT_FALSE(move_file(root_ / "a", root_ / "file" / "b"));
}

}  // namespace
}  // namespace fleetfit::core
