#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fleetfit/predict/linear_model.h"
#include "fleetfit/predict/table_model.h"
#include "fleetfit/predict/tree_model.h"
#include "tests/predict/sets.h"

namespace fleetfit::predict {
namespace {

using ::testing::HasSubstr;

TreeModel small_trees() {
  const std::vector trees = {parse_tree("0<30 =0.125 1<70 =0.5 =-0.333333343").value(),
                             parse_tree("=0.1").value()};
  return TreeModel::build(trees, {.features = 2, .link = Link::logarithm, .base = 0.7F}).value();
}

// Through text, as a file would.
Result<std::unique_ptr<Regressor>> reread(const nlohmann::json& json) {
  const auto parsed = core::parse_json(core::format_json(json), "model.json");
  return regressor_from_json(core::JsonView(*parsed, "model.json"), 2);
}

void expect_equal_after_rereading(const Regressor& model) {
  const auto copy = reread(model.to_json());
  ASSERT_TRUE(copy) << copy.error().message;
  const auto set = test::make_set(50, 2, 1, [](std::span<const double>) { return 1.0; });
  for (std::size_t i = 0; i < 50; ++i)
    EXPECT_EQ((*copy)->predict_one(set.rows().row(i)), model.predict_one(set.rows().row(i)));
}

TEST(RegressorJson, KeepsEveryModelExactly) {
  const LinearModel linear(0.1, {1.0 / 3, 2e-9});
  expect_equal_after_rereading(linear);
  expect_equal_after_rereading(small_trees());
  expect_equal_after_rereading(ProductModel(linear, small_trees()));
  expect_equal_after_rereading(TableModel({{{1, 2}, 0.5}, {{50, 60}, 7.25}}, linear));
}

std::string problem(nlohmann::json json) {
  const auto model = reread(json);
  return model ? "" : model.error().message;
}

TEST(RegressorJson, NamesThePlaceOfDamage) {
  auto linear = LinearModel(1, {1, 2}).to_json();
  linear["weights"] = {1};
  EXPECT_EQ(problem(linear), "model.json: weights: expected 2 numbers, found 1");
  linear["type"] = "oracle";
  EXPECT_EQ(problem(linear), "model.json: type: there is no model of type 'oracle'");

  auto trees = small_trees().to_json();
  trees["trees"][1] = "7<1 =1 =2";
  EXPECT_EQ(problem(trees), "model.json: trees: tree 1: feature 7 is none of 2");
  trees["trees"][1] = "0<1 =1";
  EXPECT_EQ(problem(trees), "model.json: trees: tree 1: it is not whole");
  trees["trees"][1] = 5;
  EXPECT_EQ(problem(trees), "model.json: trees: tree 1 is no text");
  trees.erase("trees");
  EXPECT_THAT(problem(trees), HasSubstr("trees"));

  auto table = TableModel({{{1, 2}, 0.5}}, LinearModel(0, {1, 1})).to_json();
  table["ms"] = {-0.5};
  EXPECT_EQ(problem(table), "model.json: ms: row 0: -0.5 is not positive");
}

TEST(TableModel, GivesTheMedianOfEqualRows) {
  test::OwnedSet set{.columns = 1, .x = {4, 4, 4, 8}, .y = {1, 2, 9, 5}, .fold = {0, 1, 2, 3}};
  const auto fitted = fit_table(set.view());
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->model->predict_one(std::vector{4.0}), 2);
  EXPECT_EQ(fitted->model->predict_one(std::vector{8.0}), 5);
  EXPECT_TRUE(fitted->model->knows(std::vector{8.0}));
  EXPECT_FALSE(fitted->model->knows(std::vector{9.0}));
}

TEST(TableModel, ScalesTheNearestEntryByTheGuide) {
  const TableModel table({{{10, 1}, 4}, {{1000, 1}, 70}}, LinearModel(0, {2, 0}));
  EXPECT_DOUBLE_EQ(table.predict_one(std::vector{20.0, 1.0}), 8);
  EXPECT_DOUBLE_EQ(table.predict_one(std::vector{2000.0, 1.0}), 140);
}

}  // namespace
}  // namespace fleetfit::predict
