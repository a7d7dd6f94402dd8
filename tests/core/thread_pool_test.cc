#include "fleetfit/core/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>

#include "fleetfit/core/random.h"

namespace fleetfit::core {
namespace {

class ThreadPoolOf : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Workers, ThreadPoolOf, testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolOf, CallsEveryIndexOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.workers(), GetParam());
  for (const std::size_t count : {0u, 1u, 2u, 255u, 256u, 257u, 10'000u}) {
    std::vector<int> calls(count);
    pool.parallel_for(count, [&](std::size_t i) { ++calls[i]; });
    EXPECT_EQ(calls, std::vector<int>(count, 1));
  }
}

TEST_P(ThreadPoolOf, ChunkedSumsOfRandomNumbersAreTheSameOnAnyNumberOfThreads) {
  const auto sum_on = [](ThreadPool& pool) {
    const Random seed(1);
    std::vector<double> sums(11);
    pool.parallel_chunks(1001, 100, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) sums[begin / 100] += seed.split(i).normal();
    });
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  };
  ThreadPool inline_pool(1);
  ThreadPool pool(GetParam());
  EXPECT_EQ(sum_on(pool), sum_on(inline_pool));
}

TEST_P(ThreadPoolOf, ThrowsTheExceptionOfTheLowestIndex) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 50; ++round) {
    try {
      pool.parallel_for(5000, [](std::size_t i) {
        if (i % 1000 == 777) throw std::runtime_error(std::to_string(i));
      });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "777");
    }
  }
}

TEST_P(ThreadPoolOf, WorksOnAfterAnException) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(pool.parallel_for(10, [](std::size_t) { throw std::logic_error("no"); }),
               std::logic_error);
  std::atomic<int> calls = 0;
  pool.parallel_for(100, [&](std::size_t) { ++calls; });
  EXPECT_EQ(calls, 100);
}

TEST_P(ThreadPoolOf, LoopsInsideLoopsEnd) {
  ThreadPool pool(GetParam());
  std::atomic<int> calls = 0;
  pool.parallel_for(10, [&](std::size_t) {
    pool.parallel_for(10,
                      [&](std::size_t) { pool.parallel_for(10, [&](std::size_t) { ++calls; }); });
  });
  EXPECT_EQ(calls, 1000);
}

TEST_P(ThreadPoolOf, TakesLoopsFromManyThreads) {
  ThreadPool pool(GetParam());
  std::atomic<int> calls = 0;
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 4; ++i) {
      callers.emplace_back([&] {
        for (int round = 0; round < 20; ++round)
          pool.parallel_for(50, [&](std::size_t) { ++calls; });
      });
    }
  }
  EXPECT_EQ(calls, 4000);
}

TEST_P(ThreadPoolOf, StopsWhenCancelled) {
  ThreadPool pool(GetParam());
  std::stop_source source;
  std::atomic<std::size_t> calls = 0;
  const auto status = pool.parallel_for(
      100'000,
      [&](std::size_t) {
        if (++calls == 10) source.request_stop();
      },
      source.get_token());
  EXPECT_EQ(status.error().code, ErrorCode::cancelled);
  EXPECT_LT(calls, 100'000u);
  EXPECT_TRUE(pool.parallel_for(10, [](std::size_t) {}, std::stop_token()));
}

TEST(ThreadPool, RunsInlineWithOneWorker) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.workers(), 1);
  pool.parallel_for(5, [caller = std::this_thread::get_id()](std::size_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
  EXPECT_GE(ThreadPool::available_cpus(), 1);
}

}  // namespace
}  // namespace fleetfit::core
