#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "app/measurement_records.h"
#include "fleetfit/app/measuring.h"
#include "fleetfit/core/csv.h"
#include "fleetfit/space/space.h"
#include "tests/core/recording_progress.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::app {
namespace {

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
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NE((*records)[i].model_hash, (*records)[i + 1].model_hash);
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

TEST(LeastDisturbedMeasurement, IsTheFastestAndTheNewestOfEquals) {
  const auto chosen = [](const std::vector<double>& newest_first) {
    std::vector<store::MeasurementRecord> records;
    for (const double ms : newest_first) {
      records.emplace_back();
      records.back().latency = store::Latency{.median_ms = ms};
      records.back().runs = std::ssize(records);
    }
    return least_disturbed_of(std::move(records)).runs;
  };
  EXPECT_EQ(chosen({7}), 1);
  EXPECT_EQ(chosen({9, 5}), 2);
  EXPECT_EQ(chosen({9, 1, 5}), 2);
  EXPECT_EQ(chosen({3, 1, 9, 1}), 2);
}

TEST_F(MeasureDesigns, ADeviceAddedLaterIsMeasuredAlone) {
  measure(request(2));
  add_device(std::string(FAKE_RUNTIME) + " nothing special", "other");
  auto both = request(2);
  both.devices = {"fake", "other"};
  const auto results = measure(both);
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0].record.device, "fake");
  EXPECT_EQ(results[1].record.device, "other");
  EXPECT_TRUE(results[0].known);
  EXPECT_FALSE(results[1].known);
  EXPECT_EQ(results[0].number, results[1].number);
  EXPECT_EQ(kept(), 4U);
}

TEST_F(MeasureDesigns, StoppedWorkHasNothingButWhatWasKnown) {
  measure(request(1));
  std::stop_source stop;
  stop.request_stop();
  const auto results = measure(request(3), stop.get_token());
  EXPECT_EQ(results.size(), 1U);
}

TEST_F(MeasureDesigns, TellsBeforehandHowLongItTakes) {
  measure(request(2));
  const auto events = progress_.events();
  const auto message =
      std::ranges::find(events, core::ProgressKind::message, &core::RecordingProgress::Event::kind);
  ASSERT_NE(message, events.end());
  EXPECT_TRUE(message->text.starts_with("2 of 2 measurements are to be made")) << message->text;
  EXPECT_EQ(events.back().done, 2U);
}

TEST_F(MeasureDesigns, RefusesWhatMakesNoSense) {
  const auto refusal = [&](const DesignsRequest& request) {
    const auto result = measure_designs(*workplace_, request, progress_, {});
    return result ? "" : result.error().message;
  };
  auto bad = request(1);
  bad.space = "nosuch";
  EXPECT_NE(refusal(bad).find("icpe"), std::string::npos);
  EXPECT_EQ(refusal(request(0)), "there is no design to measure");
  bad = request(1);
  bad.devices = {"fake", "fake"};
  EXPECT_NE(refusal(bad).find("twice"), std::string::npos);
  EXPECT_EQ(kept(), 0U);
}

TEST_F(MeasureDesigns, ExportsAColumnForEachDevice) {
  const auto results = measure(request(2));
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "t.csv";
  const auto summary = export_designs(*workplace_, "icpe", file);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->rows, 2U);
  const auto table = core::read_csv(file).value();
  EXPECT_EQ(std::vector<std::string>(table.header().begin(), table.header().end()),
            (std::vector<std::string>{"design", "fake"}));
  std::set<std::string> designs;
  for (std::size_t row = 0; row < 2; ++row) designs.emplace(table.cell(row, 0));
  EXPECT_TRUE(designs.contains(*results[0].record.design));
  EXPECT_EQ(table.number(0, 1).value(), results[0].record.latency->median_ms);
}

TEST_F(MeasureDesigns, HasNothingToExportAtFirst) {
  const core::TemporaryFolder folder;
  const auto summary = export_designs(*workplace_, "icpe", folder.path() / "t.csv");
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace fleetfit::app
