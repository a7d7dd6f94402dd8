#include "adapt/run_series.h"

#include <gtest/gtest.h>

namespace fleetfit::adapt {
namespace {

TEST(RunSeries, ARoundThatWasDisturbedDoesNotCount) {
  RunSeries series;
  series.add_round(std::vector{1.0, 1.1, 0.9});
  series.add_round(std::vector{9.0, 9.0, 9.0});
  series.add_round(std::vector{1.2, 1.3, 1.1});
  EXPECT_EQ(series.result({}).ms, 1.2);
}

TEST(RunSeries, ATailIsThatOfAllRuns) {
  RunSeries series;
  std::vector<double> runs;
  for (int i = 0; i <= 100; ++i) runs.push_back(i);
  series.add_round(runs);
  EXPECT_NEAR(series.result({.quantile = 0.95}).ms, 95, 1e-9);
}

TEST(RunSeries, FillsRoundsAndRunsMoreForATail) {
  RunSeries series;
  EXPECT_EQ(series.runs_per_round({.round_ms = 10}), 1) << "nothing is known yet";
  series.add_round(std::vector{2.0});
  EXPECT_EQ(series.runs_per_round({.round_ms = 10}), 5);
  // Ten runs of a thousand lie beyond the 99th percentile.
  EXPECT_EQ(series.runs_per_round({.quantile = 0.99, .rounds = 10, .round_ms = 10}), 100);
}

TEST(RunSeries, NodesHaveTheMedianOfTheRounds) {
  RunSeries series;
  series.add_round(std::vector{1.0});
  for (const double ms : {0.5, 7.0, 0.6}) series.add_nodes({{.node = "a", .ms = ms}});
  const auto time = series.result({});
  ASSERT_EQ(time.nodes.size(), 1U);
  EXPECT_EQ(time.nodes[0].ms, 0.6);
}

}  // namespace
}  // namespace fleetfit::adapt
