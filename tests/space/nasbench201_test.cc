#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fleetfit/cost/cost.h"
#include "fleetfit/graph/evaluate.h"
#include "fleetfit/space/space.h"
#include "fleetfit/space/table.h"
#include "tests/shared_data.h"

namespace fleetfit::space {
namespace {

using Row = std::vector<Choice>;

const Space& cells() { return *find_space("nasbench201").value(); }

graph::Graph lowered(const std::string& text) {
  return cells().lower(cells().parse(text).value()).value();
}

TEST(NasBench201, EdgesAreLiveIfAWholePathRunsThroughThem) {
  // All ways from the first node to the last, by their edges.
  const std::vector<std::vector<std::size_t>> paths = {{3}, {0, 4}, {1, 5}, {0, 2, 5}};
  Row design(6);
  int designs = 0;
  int unconnected = 0;
  do {
    SlotSet expected;
    for (const auto& path : paths) {
      if (std::ranges::all_of(path, [&](std::size_t edge) { return design[edge] != 0; })) {
        for (const auto edge : path) expected.set(edge);
      }
    }
    EXPECT_EQ(cells().live_slots(design), expected) << cells().format(design);
    ++designs;
    unconnected += expected.none() ? 1 : 0;
  } while (cells().next(design));
  EXPECT_EQ(designs, 15'625);
  EXPECT_EQ(unconnected, 341);  // as many score exactly 10 % in the published accuracies
  EXPECT_EQ(cells().size().exact(), 15'625U);
}

TEST(NasBench201, CountsTellDeadOperatorsFromLiveOnes) {
  // The first edge's convolution leads to a node that nothing reads: (1>2) and (1>3) are none.
  const auto design = cells().parse("310200").value();
  Population designs(6);
  designs.add(design);
  std::vector<double> counts(10);
  cells().encode(designs, cells().find_encoding("counts").value(), counts);
  // none, skip, conv1x1, conv3x3, pool; then those that are live: (0>3) alone.
  EXPECT_EQ(counts, (std::vector<double>{3, 1, 1, 1, 0, 0, 0, 1, 0, 0}));
}

TEST(NasBench201, ConvolutionsAreCountedAsPublishedEvenIfDead) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "there is no folder of shared data";
  const auto table =
      read_design_table(*data / "accuracy/nasbench201.csv", cells(),
                        {.columns = {"flops_m_c10", "params_m_c10"}, .cells = CellRule::any});
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->designs.size(), 15'625U);
  for (std::size_t row = 0; row < table->designs.size(); row += 29) {
    const auto graph = cells().lower(table->designs[row]).value();
    const auto cost = cost::count_cost(graph).value();
    const auto text = cells().format(table->designs[row]);
    EXPECT_NEAR(static_cast<double>(cost.total.flops) / 2e6, table->values[0][row], 5.1e-5) << text;
    EXPECT_NEAR(static_cast<double>(cost.total.params) / 1e6, table->values[1][row], 5.1e-7)
        << text;
  }
}

TEST(NasBench201, CellsWithoutALivePathAreThoseThatGuess) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "there is no folder of shared data";
  const auto table = read_design_table(*data / "accuracy/nasbench201.csv", cells(),
                                       {.columns = {"c10_test_200ep"}, .cells = CellRule::any})
                         .value();
  for (std::size_t row = 0; row < table.designs.size(); ++row) {
    EXPECT_EQ(cells().live_slots(table.designs[row]).none(), table.values[0][row] == 10.0)
        << cells().format(table.designs[row]);
  }
}

TEST(NasBench201, ParametersOfTheEmptyAndOfTheLargestCell) {
  EXPECT_EQ(cost::count_cost(lowered("000000")).value().total.params, 73'306);
  // Six 3x3 convolutions in 5 cells of 16, 32 and 64 channels, each with a batch norm.
  constexpr std::int64_t kConvolutions = 6 * 5 * (9 * (256 + 1024 + 4096) + 2 * (16 + 32 + 64));
  EXPECT_EQ(cost::count_cost(lowered("333333")).value().total.params, 73'306 + kConvolutions);
}

TEST(NasBench201, CellsWithoutAPathGiveTheSameForEveryImage) {
  // (0>1) and (1>2) are there, but nothing leads to the last node.
  const auto graph = lowered("102000");
  ASSERT_TRUE(graph::validate(graph));
  const auto a = graph::evaluate(graph, graph::random_inputs(graph, 1)).value();
  const auto b = graph::evaluate(graph, graph::random_inputs(graph, 2)).value();
  const auto first = a[0].data.as<float>();
  EXPECT_TRUE(std::ranges::equal(first, b[0].data.as<float>()));
  EXPECT_TRUE(std::ranges::all_of(first, [](float value) { return std::isfinite(value); }));
}

TEST(NasBench201, ErrorsNameTheEdge) {
  EXPECT_EQ(cells().parse("42171").error().message, "edge 0>3: found '71', not 0, 1, 2, 3, 4");
  EXPECT_EQ(cells().parse("42").error().message, "edge 1>2: the text ends, not 0, 1, 2, 3, 4");
}

}  // namespace
}  // namespace fleetfit::space
