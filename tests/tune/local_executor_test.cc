#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "fleetfit/tune/executor.h"

namespace fleetfit::tune {
namespace {

WorkerStatus wait_for_end(Executor& executor, std::size_t worker) {
  for (int i = 0; i < 2000; ++i) {
    const auto status = executor.poll().value().at(worker);
    if (status.state == WorkerState::ended) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

TEST(LocalExecutor, TellsHowWorkersEnd) {
  const auto executor = make_local_executor();
  const auto good = executor->submit({.command = {"true"}}).value();
  const auto bad = executor->submit({.command = {"sh", "-c", "echo no luck >&2; exit 3"}}).value();
  const auto killed = executor->submit({.command = {"sh", "-c", "kill -9 $$"}}).value();
  EXPECT_TRUE(wait_for_end(*executor, good).succeeded);
  const auto failed = wait_for_end(*executor, bad);
  EXPECT_FALSE(failed.succeeded);
  EXPECT_EQ(failed.ending, "exit status 3: no luck");
  EXPECT_TRUE(wait_for_end(*executor, killed).killed);
}

TEST(LocalExecutor, AWorkerNoticesByItsInputThatItIsToEnd) {
  const auto executor = make_local_executor();
  const auto worker = executor->submit({.command = {"cat"}}).value();
  EXPECT_NE(executor->poll().value().at(worker).state, WorkerState::ended);
  ASSERT_TRUE(executor->cancel(worker));
  EXPECT_TRUE(wait_for_end(*executor, worker).succeeded);
}

TEST(LocalExecutor, AProgramThatIsNotThereIsAnError) {
  const auto result = make_local_executor()->submit({.command = {"/no/such/worker"}});
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, testing::HasSubstr("/no/such/worker"));
}

}  // namespace
}  // namespace fleetfit::tune
