// Designs priced by a graph network, which the program beside trains.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fleetfit/predict/design_predictor.h"

namespace fleetfit::train {
namespace {

TEST(DesignGraph, IsTrainedByTheProgramBesideAndReadBack) {
  const auto& cells = **space::find_space("nasbench201");
  const auto designs = space::sample_designs(cells, {.seed = 1, .count = 30}).value();
  const auto counts = cells.find_encoding("counts").value();
  const auto columns = cells.encodings()[counts].features.size();
  std::vector<double> rows(designs.size() * columns);
  cells.encode(designs, counts, rows);
  std::vector<double> ms;
  for (std::size_t i = 0; i < designs.size(); ++i)
    ms.push_back(1 + rows[i * columns] + 2 * rows[i * columns + 1]);

  core::ThreadPool pool(1);
  const auto predictor = predict::train_design_predictor(
      cells, designs, ms, {.method = predict::DesignMethod::graph, .budget_s = 3}, pool);
  ASSERT_TRUE(predictor) << predictor.error().message;
  EXPECT_EQ((*predictor)->reads(), "graph");
  EXPECT_EQ((*predictor)->identity().method, "graph");
  EXPECT_EQ((*predictor)->identity().networks, 30);

  const auto json = (*predictor)->to_json();
  const auto again = predict::design_predictor_from_json(core::JsonView(json, "p.json"));
  ASSERT_TRUE(again) << again.error().message;
  std::vector<double> first(3);
  std::vector<double> second(3);
  ASSERT_TRUE((*predictor)->evaluate(designs.batch().part(0, 3), first));
  ASSERT_TRUE((*again)->evaluate(designs.batch().part(0, 3), second));
  EXPECT_EQ(first, second);
  for (const double predicted : first) EXPECT_GT(predicted, 0);
}

}  // namespace
}  // namespace fleetfit::train
