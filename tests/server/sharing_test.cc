#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "server/clients/client_ledger.h"
#include "server/clients/fair_queue.h"
#include "server/shared_answers.h"

namespace fleetfit::server {
namespace {

TEST(FairQueue, AddressesTakeTurns) {
  FairQueue queue;
  for (std::uint64_t id = 1; id <= 4; ++id) queue.push("crowd", {.id = id});
  queue.push("other", {.id = 10});
  queue.push("third", {.id = 20});
  queue.push("other", {.id = 11});
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 7; ++i) order.push_back(queue.pop()->id);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 10, 20, 2, 11, 3, 4}));
}

TEST(FairQueue, EndsForThoseThatWait) {
  FairQueue queue;
  const std::jthread ending([&] { queue.end(); });
  EXPECT_FALSE(queue.pop());
  queue.push("late", {.id = 1});
  EXPECT_FALSE(queue.pop());
}

TEST(ClientLedger, GivesBackWhatWasTaken) {
  ClientLedger ledger(
      {.requests = 2, .all_bytes = 100, .bytes = 60, .all_streams = 2, .streams = 1});
  auto first = ledger.claim("192.0.2.1");
  auto second = ledger.claim("192.0.2.1");
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(ledger.claim("192.0.2.1"));
  auto other = ledger.claim("192.0.2.2");
  EXPECT_TRUE(first->take(50));
  EXPECT_FALSE(second->take(11)) << "more than one address may have";
  EXPECT_TRUE(second->take(10));
  EXPECT_FALSE(other->take(41)) << "more than all of them may have";
  EXPECT_TRUE(first->become_stream());
  EXPECT_FALSE(second->become_stream());
  EXPECT_TRUE(other->become_stream());
  first.reset();
  EXPECT_TRUE(other->take(60));
  EXPECT_TRUE(second->become_stream());
  EXPECT_TRUE(ledger.claim("192.0.2.1"));
}

class SharedAnswersTest : public ::testing::Test {
 protected:
  int ask(std::optional<SharedAnswers::Moment> since, const std::string& question = "devices") {
    const auto reply = answers_.get(
        question, since, [this]() -> Result<ApiReply> { return ApiReply{.status = ++computed_}; });
    return reply ? reply->status : -1;
  }

  SharedAnswers answers_;
  int computed_ = 0;
};

TEST_F(SharedAnswersTest, GoToThoseAloneThatHadAskedBefore) {
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(ask(before), 1);
  EXPECT_EQ(ask(before), 1);
  EXPECT_EQ(ask(before, "summary"), 2);
  const auto after = std::chrono::steady_clock::now() + std::chrono::nanoseconds(1);
  std::this_thread::sleep_until(after);
  EXPECT_EQ(ask(after), 3) << "what was known before the question is no answer";
  EXPECT_EQ(ask(before), 3);
  EXPECT_EQ(ask(std::nullopt), 4);
}

TEST_F(SharedAnswersTest, FailuresAreNotKept) {
  const auto before = std::chrono::steady_clock::now();
  const auto failed = answers_.get("devices", before, []() -> Result<ApiReply> {
    return fail(ErrorCode::io, "the store is away");
  });
  EXPECT_FALSE(failed);
  EXPECT_EQ(ask(before), 1);
}

}  // namespace
}  // namespace fleetfit::server
