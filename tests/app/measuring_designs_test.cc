#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "app/measure/sessions.h"
#include "fleetfit/app/measuring.h"
#include "fleetfit/core/csv.h"
#include "fleetfit/space/space.h"
#include "tests/core/recording_progress.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::app {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

/// A device whose runtime runs nothing (it tells times of 1, 2, 3, … ms), in a store of its own.
class MeasureDesigns : public testing::Test {
 protected:
  void SetUp() override {
    workplace_.emplace(open_workplace("memory:", clock_).value());
    add_device(std::string(FAKE_RUNTIME));
  }

  void add_device(const std::string& command, const std::string& name = "fake") {
    const auto added = app::add_device(
        *workplace_,
        {.name = name, .runtime = "exec:" + command, .existing = ExistingDevice::replace});
    ASSERT_TRUE(added) << added.error().message;
  }

  static DesignsRequest request(std::size_t samples) {
    return {.space = "icpe",
            .samples = samples,
            .devices = {"fake"},
            .protocol = {.target = 1, .min_time_s = 0, .max_time_s = 0.01, .request_ms = 1}};
  }

  std::vector<MeasuredDesign> measure(const DesignsRequest& request,
                                      const std::stop_token& stop = {}) {
    const auto results = measure_designs(*workplace_, request, progress_, stop);
    EXPECT_TRUE(results) << results.error().message;
    return results.value_or(std::vector<MeasuredDesign>{});
  }

  std::size_t kept() {
    return workplace_->store->list_measurements({.operators = false}).value().size();
  }

  /// Nothing else is known then. Eight of them share the time of a design.
  void has_sessions_of_first_design(const std::vector<double>& median_ms) {
    measure(request(1));
    auto session = workplace_->store->list_measurements({.operators = true}).value().front();
    session.protocol = R"({"sessions":8})";
    workplace_.emplace(open_workplace("memory:", clock_).value());
    add_device(std::string(FAKE_RUNTIME));
    for (const double ms : median_ms) {
      session.latency->median_ms = ms;
      ASSERT_TRUE(workplace_->store->add_measurement(session));
    }
  }

  std::string last_message() {
    std::string text;
    for (const auto& event : progress_.events())
      if (event.kind == core::ProgressKind::message) text = event.text;
    return text;
  }

  core::SystemClock clock_;
  core::RecordingProgress progress_;
  std::optional<Workplace> workplace_;
};

TEST_F(MeasureDesigns, KeepsTheDesignsOfTheSeedInOrder) {
  const auto results = measure(request(3));
  ASSERT_EQ(results.size(), 3U);
  const auto* icpe = space::find_space("icpe").value();
  const auto designs = space::sample_designs(*icpe, {.seed = 1, .count = 3}).value();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(results[i].number, i);
    EXPECT_FALSE(results[i].known);
    EXPECT_EQ(results[i].record.space, "icpe");
    EXPECT_EQ(results[i].record.design, icpe->format(designs[i]));
    EXPECT_TRUE(results[i].record.latency);
    EXPECT_TRUE(results[i].record.operators.empty());
  }
}

TEST_F(MeasureDesigns, MeasuresNothingTwice) {
  measure(request(2));
  const auto more = measure(request(4));
  ASSERT_EQ(more.size(), 4U);
  EXPECT_TRUE(more[0].known && more[1].known);
  EXPECT_FALSE(more[2].known || more[3].known);
  EXPECT_EQ(kept(), 4U);
  auto later = request(2);
  later.first = 3;
  const auto rest = measure(later);
  EXPECT_EQ(rest[0].record, more[3].record);
  EXPECT_EQ(kept(), 5U);
}

TEST_F(MeasureDesigns, MeasuresAgainWhereOperatorsAreMissing) {
  measure(request(2));
  auto with_operators = request(2);
  with_operators.protocol.operators = true;
  const auto results = measure(with_operators);
  EXPECT_EQ(kept(), 4U);
  ASSERT_EQ(results[1].record.operators.size(), 2U);
  EXPECT_EQ(results[1].record.operators[0].name, "a");
  // What has operators answers a request without.
  EXPECT_TRUE(measure(request(2))[0].known);
  EXPECT_EQ(kept(), 4U);
}

TEST_F(MeasureDesigns, TriesAgainWhatFailed) {
  const core::TemporaryFolder folder;
  const auto mark = folder.path() / "failed-once";
  add_device(std::string(FAKE_RUNTIME) + " run again:" + mark.string());
  const auto first = measure(request(2));
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].record.status, store::MeasurementStatus::failed);
  EXPECT_NE(first[1].record.status, store::MeasurementStatus::failed);
  const auto second = measure(request(2));
  EXPECT_NE(second[0].record.status, store::MeasurementStatus::failed);
  EXPECT_FALSE(second[0].known);
  EXPECT_TRUE(second[1].known);
}

TEST_F(MeasureDesigns, WhatDidNotSettleIsMeasuredAgainIfAsked) {
  auto never_settles = request(2);
  never_settles.protocol.min_time_s = 60;  // more than it is given
  EXPECT_EQ(measure(never_settles)[0].record.status, store::MeasurementStatus::unstable);
  EXPECT_TRUE(measure(request(2))[0].known);
  auto again = request(2);
  again.retry_unstable = true;
  again.protocol.max_time_s = 10;
  const auto results = measure(again);
  EXPECT_FALSE(results[0].known);
  EXPECT_EQ(results[0].record.status, store::MeasurementStatus::ok) << results[0].record.reason;
  EXPECT_EQ(kept(), 4U);
}

TEST_F(MeasureDesigns, SessionsAreMeasuredRoundByRoundAndTheFastestCounts) {
  measure(request(2));
  auto three = request(2);
  three.sessions = 3;
  const auto results = measure(three);
  ASSERT_EQ(results.size(), 2U);
  const auto records = workplace_->store->list_measurements({.operators = false});
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 6U);  // newest first
  for (std::size_t round = 0; round < 3; ++round)
    EXPECT_NE((*records)[2 * round].model_hash, (*records)[2 * round + 1].model_hash);
  for (const auto& result : results) {
    std::vector<double> times;
    for (const auto& record : *records)
      if (record.model_hash == result.record.model_hash) times.push_back(record.latency->median_ms);
    std::ranges::sort(times);
    EXPECT_EQ(result.record.latency->median_ms, times[0]);
  }
  measure(three);
  EXPECT_EQ(kept(), 6U);
}

TEST_F(MeasureDesigns, SessionsGoInOrderTheFirstTimeAndAreMixedLater) {
  constexpr std::ptrdiff_t kDesigns = 8;
  auto three = request(kDesigns);
  three.sessions = 3;
  const auto results = measure(three);
  std::vector<std::string> in_order;
  for (const auto& result : results) in_order.push_back(result.record.model_hash);
  std::vector<std::string> measured;
  const auto records = workplace_->store->list_measurements({.operators = false}).value();
  for (const auto& record : records) measured.insert(measured.begin(), record.model_hash);
  ASSERT_EQ(measured.size(), 3U * kDesigns);  // oldest first
  std::vector<std::vector<std::string>> rounds;
  for (auto from = measured.begin(); from != measured.end(); from += kDesigns)
    rounds.emplace_back(from, from + kDesigns);
  EXPECT_EQ(rounds[0], in_order);
  EXPECT_NE(rounds[1], in_order);
  EXPECT_NE(rounds[2], rounds[1]);
  for (const auto& round : rounds) EXPECT_THAT(round, UnorderedElementsAreArray(in_order));
}

TEST_F(MeasureDesigns, WithoutANumberOfSessionsTheyShareTheTimeUntilTwoAgree) {
  auto usual = request(2);
  usual.sessions = std::nullopt;
  const auto first = measure(usual);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(kept(), 6U);  // the target of 100 % lets any two agree, but three are made
  const auto records = workplace_->store->list_measurements({.operators = false}).value();
  for (const auto& record : records) {
    EXPECT_EQ(sessions_shared_by(record), 8);
    EXPECT_NE(record.protocol.find("\"max_time_s\":0.00125"), std::string::npos) << record.protocol;
  }
  EXPECT_EQ(first[0].record.status, store::MeasurementStatus::ok);
  measure(usual);
  EXPECT_EQ(kept(), 6U);
}

TEST_F(MeasureDesigns, SaysWhyNothingIsMeasured) {
  has_sessions_of_first_design({1, 2, 3, 4, 5, 6, 7, 8});
  auto usual = request(1);
  usual.sessions = std::nullopt;
  usual.protocol.target = 0.02;
  measure(usual);
  EXPECT_THAT(last_message(), HasSubstr("0 of 1 designs are done, and 1 had all of their time"));
  EXPECT_THAT(last_message(), HasSubstr("--retry-unstable"));
  usual.protocol.target = 1;
  measure(usual);
  EXPECT_EQ(last_message(), "nothing is to be measured: 1 of 1 designs are done");
  auto three = request(1);
  three.sessions = 3;
  measure(three);
  EXPECT_THAT(last_message(), HasSubstr("the store has 3 sessions or more of each design"));
  EXPECT_EQ(kept(), 8U);
}

TEST_F(MeasureDesigns, WhatWasMeasuredAsAWholeIsDoneWhateverItsSessions) {
  measure(request(1));  // in one session
  auto usual = request(2);
  usual.sessions = std::nullopt;
  measure(usual);
  EXPECT_EQ(kept(), 4U);  // one of the first design, three of the second
}

TEST_F(MeasureDesigns, CampaignThatWasStoppedGetsTheSessionsThatAreMissing) {
  has_sessions_of_first_design({1});
  auto usual = request(1);
  usual.sessions = std::nullopt;
  measure(usual);
  EXPECT_EQ(kept(), 3U);
}

store::MeasurementRecord session(double ms, std::vector<double> operators = {}) {
  store::MeasurementRecord record;
  record.status = store::MeasurementStatus::unstable;
  record.latency = store::Latency{.median_ms = ms};
  for (const double op : operators)
    record.operators.push_back({.name = std::to_string(record.operators.size()), .ms = op});
  return record;
}

TEST(MergedSessions, AreTheFastestAndTheNewestOfEquals) {
  const auto chosen = [](const std::vector<double>& newest_first) {
    std::vector<store::MeasurementRecord> records;
    for (const double ms : newest_first) {
      records.push_back(session(ms));
      records.back().runs = std::ssize(records);
    }
    return merge_sessions(std::move(records), 0.02).runs;
  };
  EXPECT_EQ(chosen({7}), 1);
  EXPECT_EQ(chosen({9, 5}), 2);
  EXPECT_EQ(chosen({9, 1, 5}), 2);
  EXPECT_EQ(chosen({3, 1, 9, 1}), 2);
}

TEST(MergedSessions, HaveTheLeastTimeOfEachOperator) {
  const auto merged =
      merge_sessions({session(10, {4, 5}), session(9, {5, 4}), session(8, {1})}, 0.02);
  ASSERT_EQ(merged.operators.size(), 1U);  // the fastest has other operators than the rest
  EXPECT_EQ(merged.operators[0].ms, 1);
  const auto same = merge_sessions({session(10, {4, 5}), session(9, {5, 4})}, 0.02);
  EXPECT_EQ(same.latency->median_ms, 9);
  EXPECT_EQ(same.operators[0].ms, 4);
  EXPECT_EQ(same.operators[1].ms, 4);
}

TEST(MergedSessions, AreOkIfTheTwoFastestAgreeWithinTwiceTheTarget) {
  using enum store::MeasurementStatus;
  EXPECT_EQ(merge_sessions({session(10)}, 0.02).status, unstable);
  EXPECT_EQ(merge_sessions({session(10.3), session(10), session(14)}, 0.02).status, ok);
  const auto apart = merge_sessions({session(10.5), session(10), session(14)}, 0.02);
  EXPECT_EQ(apart.status, unstable);
  EXPECT_EQ(apart.reason, "of 3 sessions no two of the fastest agree within 4 %");
}

}  // namespace
}  // namespace fleetfit::app
