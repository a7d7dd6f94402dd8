#include "fleetfit/core/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace fleetfit::core {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

FileDescriptor open_nothing() { return FileDescriptor(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

TEST(FileDescriptor, IsClosedAtTheEnd) {
  int number = -1;
  {
    const auto fd = open_nothing();
    number = fd.get();
    ASSERT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(FileDescriptor, HoldsNothingIfTheCallFailed) {
  const FileDescriptor fd(::open("/nowhere/at/all", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(fd.is_open());
  EXPECT_FALSE(FileDescriptor().is_open());
}

TEST(FileDescriptor, ClosesWhatItHeldWhenItTakesAnother) {
  auto kept = open_nothing();
  auto given = open_nothing();
  const int before = kept.get();
  const int after = given.get();
  kept = std::move(given);
  EXPECT_FALSE(is_open(before));
  EXPECT_EQ(kept.get(), after);
  EXPECT_TRUE(is_open(after));
}

TEST(FileDescriptor, StaysOpenWhenMovedOntoItself) {
  auto fd = open_nothing();
  auto& same = fd;
  fd = std::move(same);
  EXPECT_TRUE(is_open(fd.get()));
}

TEST(WriteAll, WritesMoreThanAPipeHolds) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const FileDescriptor in(ends[0]);
  FileDescriptor out(ends[1]);
  const std::string sent(1 << 20, 'x');
  std::string received;
  std::thread reader([&] {
    std::array<char, 1000> part{};
    for (ssize_t got = 0; (got = ::read(in.get(), part.data(), part.size())) > 0;)
      received.append(part.data(), static_cast<std::size_t>(got));
  });
  EXPECT_TRUE(write_all(out, sent));
  out.close();
  reader.join();
  EXPECT_EQ(received, sent);
}

TEST(WriteAll, SaysWhenItCannotWrite) {
  const FileDescriptor fd(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(fd.is_open());
  EXPECT_FALSE(write_all(fd, "x"));
  EXPECT_EQ(errno, ENOSPC);
}

}  // namespace
}  // namespace fleetfit::core
