#include "fleetfit/core/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/core/temporary_folder.h"

namespace fleetfit::core {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(ReadFile, GivesEveryByte) {
  const TemporaryFolder folder;
  const std::string content("a\0b\r\n\xff", 6);
  EXPECT_EQ(read_file(folder.file("a.bin", content)).value(), content);
  EXPECT_EQ(read_file(folder.file("empty", "")).value(), "");
}

TEST(ReadFile, ReadsFilesThatStateNoSize) {
  EXPECT_THAT(read_file("/proc/self/status").value(), HasSubstr("Pid:"));
}

TEST(ReadFile, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const auto missing = read_file(folder.path() / "none.json").error();
  EXPECT_EQ(missing.code, ErrorCode::not_found);
  EXPECT_THAT(missing.message, HasSubstr("none.json: No such file"));

  const auto is_folder = read_file(folder.path()).error();
  EXPECT_EQ(is_folder.code, ErrorCode::invalid_input);
  EXPECT_THAT(is_folder.message, HasSubstr("it is a folder"));
}

TEST(ReadFile, NamesAMissingPermission) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TemporaryFolder folder;
  const auto path = folder.file("secret", "x");
  fs::permissions(path, fs::perms::none);
  const auto refused = read_file(path).error();
  EXPECT_EQ(refused.code, ErrorCode::io);
  EXPECT_THAT(refused.message, HasSubstr("Permission denied"));
}

TEST(ReadFile, StopsAtTheLimit) {
  const TemporaryFolder folder;
  const auto path = folder.file("ten", "0123456789");
  EXPECT_TRUE(read_file(path, {.max_bytes = 10}));
  const auto error = read_file(path, {.max_bytes = 9}).error();
  EXPECT_EQ(error.code, ErrorCode::invalid_input);
  EXPECT_THAT(error.message, HasSubstr("larger than the limit of 9 bytes"));
}

TEST(ReadFile, RefusesDevicesAndPipesWithoutWaiting) {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(read_file("/dev/zero").error().message, HasSubstr("not a regular file"));
  EXPECT_THAT(read_file(pipe).error().message, HasSubstr("not a regular file"));
}

TEST(ReadFile, ReadsAPipeToItsEndIfAsked) {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { EXPECT_TRUE(write_file(pipe, "through the pipe")); });
  EXPECT_EQ(read_file(pipe, {.special_files = SpecialFiles::allow}).value(), "through the pipe");
  writer.join();
  EXPECT_FALSE(read_file("/dev/zero", {.max_bytes = 1000, .special_files = SpecialFiles::allow}));
}

TEST(WriteFile, CreatesAndReplacesAndLeavesNothingElse) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.txt";
  ASSERT_TRUE(write_file(path, "one"));
  ASSERT_TRUE(write_file(path, "two"));
  EXPECT_EQ(read_file(path).value(), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(WriteFile, KeepsPermissionsAndFollowsLinks) {
  const TemporaryFolder folder;
  const auto path = folder.file("real", "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real", folder.path() / "link");
  ASSERT_TRUE(write_file(folder.path() / "link", "new"));
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(read_file(path).value(), "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(WriteFile, WritesDevicesStraight) {
  EXPECT_TRUE(write_file("/dev/null", "gone"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(WriteFile, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  EXPECT_EQ(write_file(folder.path() / "no" / "a.txt", "x").error().code, ErrorCode::not_found);
  EXPECT_THAT(write_file(folder.path(), "x").error().message, HasSubstr("Is a directory"));
}

TEST(WriteFile, ManyWritersOfOneFileLeaveTheContentOfOne) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "shared";
  std::vector<std::thread> writers;
  for (char c = 'a'; c < 'e'; ++c) {
    writers.emplace_back([&path, c] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(write_file(path, std::string(5000, c)));
    });
  }
  for (auto& writer : writers) writer.join();
  const auto content = read_file(path).value();
  EXPECT_EQ(content, std::string(5000, content[0]));
}

TEST(FileWriter, ReplacesTheFileWhenItIsCommitted) {
  const TemporaryFolder folder;
  const auto path = folder.file("a", "old");
  auto writer = FileWriter::open(path).value();
  ASSERT_TRUE(writer.write("ne"));
  FileWriter moved = std::move(writer);
  ASSERT_TRUE(moved.write("w"));
  EXPECT_EQ(read_file(path).value(), "old");
  ASSERT_TRUE(moved.commit());
  EXPECT_EQ(read_file(path).value(), "new");
}

TEST(FileWriter, LeavesNothingBehindIfItIsNotCommitted) {
  const TemporaryFolder folder;
  {
    auto writer = FileWriter::open(folder.path() / "a").value();
    ASSERT_TRUE(writer.write("half"));
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(MappedFile, ShowsTheBytesWhereverItIsMoved) {
  const TemporaryFolder folder;
  auto file = MappedFile::open(folder.file("a", "first")).value();
  auto other = MappedFile::open(folder.file("b", "second")).value();
  const MappedFile moved = std::move(file);
  EXPECT_EQ(text_of(moved), "first");
  file = std::move(other);
  EXPECT_EQ(text_of(file), "second");
}

TEST(MappedFile, ShowsReleasedBytesAgain) {
  const TemporaryFolder folder;
  std::string content(20'000, 'a');
  content += "b";
  const auto file = MappedFile::open(folder.file("a", content)).value();
  EXPECT_EQ(text_of(file), content);
  file.release(file.bytes().subspan(5000, 3000));
  file.release(file.bytes());
  file.release({});
  EXPECT_EQ(text_of(file), content);
}

TEST(MappedFile, AnEmptyFileIsAnEmptyView) {
  const TemporaryFolder folder;
  EXPECT_TRUE(MappedFile::open(folder.file("empty", "")).value().bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(folder.path()).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(MappedFile::open(pipe).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(MappedFile::open("/dev/zero").error().code, ErrorCode::invalid_input);
  EXPECT_EQ(MappedFile::open(folder.path() / "none").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace fleetfit::core
