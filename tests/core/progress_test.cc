#include "fleetfit/core/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "fleetfit/core/file.h"
#include "tests/core/fake_clock.h"
#include "tests/core/recording_progress.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::core {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(ProgressTask, ReportsFromStartToFinish) {
  RecordingProgress sink;
  {
    ProgressTask task(sink, {.name = "measure", .total = 3, .unit = "designs"});
    task.advance();
    task.message("cpu is hot");
    task.advance(2);
  }
  const auto events = sink.events();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].kind, ProgressKind::started);
  EXPECT_EQ(events[0].name, "measure");
  EXPECT_EQ(events[0].unit, "designs");
  EXPECT_EQ(events[0].total, 3u);
  EXPECT_EQ(events[1].done, 1u);
  EXPECT_EQ(events[2].text, "cpu is hot");
  EXPECT_EQ(events[3].done, 3u);
  EXPECT_EQ(events[4].kind, ProgressKind::finished);
  EXPECT_EQ(events[4].done, 3u);
}

TEST(ProgressTask, CountsTheAdvancesOfManyThreads) {
  RecordingProgress sink;
  ProgressTask task(sink, {.name = "count"});
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 250; ++k) task.advance();
      });
    }
  }
  std::set<std::uint64_t> counts;
  for (const auto& event : sink.events()) counts.insert(event.done);
  EXPECT_EQ(counts.size(), 1001u);
  EXPECT_EQ(*counts.rbegin(), 1000u);
}

class ProgressBarTest : public testing::Test {
 protected:
  std::unique_ptr<Progress> bar(int width = 120) {
    return make_progress_bar(
        clock_,
        {.write = [this](std::string_view text) { written_.emplace_back(text); }, .width = width});
  }

  FakeClock clock_;
  std::vector<std::string> written_;
};

TEST_F(ProgressBarTest, ShowsBarCountRateAndRemainingTime) {
  const auto sink = bar();
  ProgressTask task(*sink, {.name = "measure", .total = 100, .unit = "designs"});
  clock_.advance(10s);
  task.advance(25);  // 2.5 per second, so that 75 take 30 seconds
  EXPECT_THAT(
      written_,
      ElementsAre("\r\x1b[Kmeasure [------------------------] 0/100 designs",
                  "\r\x1b[Kmeasure [######------------------] 25/100 designs  2.5/s  ETA 0:30"));
}

TEST_F(ProgressBarTest, ShowsNoBarForAnUnknownTotal) {
  const auto sink = bar();
  ProgressTask task(*sink, {.name = "scan", .unit = "files"});
  clock_.advance(2s);
  task.advance(3);
  EXPECT_EQ(written_.back(), "\r\x1b[Kscan 3 files  1.5/s");
}

TEST_F(ProgressBarTest, RedrawsAtMostTenTimesASecond) {
  const auto sink = bar();
  ProgressTask task(*sink, {.name = "measure", .total = 1000});
  for (int i = 0; i < 1000; ++i) {
    clock_.advance(1ms);
    task.advance();
  }
  EXPECT_EQ(written_.size(), 11u);
}

TEST_F(ProgressBarTest, ClearsItsLineAtTheEnd) {
  const auto sink = bar();
  {
    ProgressTask task(*sink, {.name = "measure", .total = 2});
  }
  EXPECT_EQ(written_.back(), "\r\x1b[K");
}

TEST_F(ProgressBarTest, GoesBackToTheOuterTask) {
  const auto sink = bar();
  ProgressTask outer(*sink, {.name = "outer", .total = 2});
  {
    ProgressTask inner(*sink, {.name = "inner", .total = 2});
    EXPECT_THAT(written_.back(), testing::HasSubstr("inner"));
  }
  EXPECT_THAT(written_.back(), testing::HasSubstr("outer"));
}

TEST_F(ProgressBarTest, PutsMessagesAboveTheBarWithoutControlCharacters) {
  const auto sink = bar();
  ProgressTask task(*sink, {.name = "t", .total = 1});
  written_.clear();
  task.message("hot\x1b[2J");
  EXPECT_THAT(written_,
              ElementsAre("\r\x1b[K", "hot [2J\n", "\r\x1b[Kt [------------------------] 0/1"));
}

TEST_F(ProgressBarTest, IsNeverWiderThanTheTerminal) {
  const auto sink = bar(10);
  ProgressTask task(*sink, {.name = "\xc3\xa4\xc3\xa4\xc3\xa4 and a long name", .total = 5});
  EXPECT_EQ(written_.back(), "\r\x1b[K\xc3\xa4\xc3\xa4\xc3\xa4 and a");
}

TEST_F(ProgressBarTest, MayBeAdvancedFromManyThreads) {
  const auto sink = bar();
  ProgressTask task(*sink, {.name = "t", .total = 400});
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        clock_.advance(50ms);
        task.advance();
      }
    });
  }
  threads.clear();
  clock_.advance(1s);
  task.advance(0);
  EXPECT_THAT(written_.back(), testing::HasSubstr("400/400"));
}

TEST(TerminalProgress, IsSilentOnAStreamThatIsNoTerminal) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "out";
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  const SystemClock clock;
  {
    const auto sink = make_terminal_progress(clock, {.fd = fd});
    ProgressTask task(*sink, {.name = "t", .total = 1});
    task.advance();
    task.message("hello");
  }
  ::close(fd);
  EXPECT_EQ(read_file(path).value(), "");
}

}  // namespace
}  // namespace fleetfit::core
