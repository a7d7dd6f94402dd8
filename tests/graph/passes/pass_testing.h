#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::graph {

inline Graph finished(NetBuilder&& builder) {
  auto graph = std::move(builder).finish();
  if (!graph) throw std::runtime_error(graph.error().message);
  return std::move(*graph);
}

/// A graph by hand, for what the builder has no word for: shapes are inferred at the end.
class HandMade {
 public:
  Graph graph;

  TensorId input(std::string name, Shape shape) {
    const auto id =
        graph.add_tensor({.name = std::move(name), .dtype = DType::f32, .shape = std::move(shape)});
    graph.inputs.push_back(id);
    return id;
  }

  TensorId floats(Shape shape, std::uint64_t seed, double center = 0, double spread = 1) {
    const auto count = static_cast<std::size_t>(elements(shape));
    return graph.add_tensor(
        {.name = "weights",
         .dtype = DType::f32,
         .shape = std::move(shape),
         .data = TensorData::generate(
             {.count = count, .center = center, .spread = spread, .seed = seed})});
  }

  TensorId ints(const Ints& values) { return graph.add_ints("ints", values); }

  TensorId node(Operator op, std::vector<TensorId> inputs) {
    const auto name = "node_" + std::to_string(graph.nodes.size());
    const auto id = graph.add_tensor({.name = name});
    graph.nodes.push_back(
        {.name = name, .op = std::move(op), .inputs = std::move(inputs), .outputs = {id}});
    return id;
  }

  void output(TensorId id, std::string name) {
    graph.tensor(id).name = std::move(name);
    graph.outputs.push_back(id);
  }

  Graph finish() {
    const auto status = infer_shapes(graph);
    if (!status) throw std::runtime_error(status.error().message);
    return std::move(graph);
  }
};

/// "Conv", "Conv+Relu", … of each node in order.
inline std::vector<std::string> node_types(const Graph& graph) {
  std::vector<std::string> types;
  for (const auto& node : graph.nodes) {
    std::string type(type_name(node.op));
    if (node.activation) type += "+" + std::string(type_name(node.activation.kind));
    types.push_back(type);
  }
  return types;
}

inline std::vector<std::string> names(const Graph& graph, const std::vector<TensorId>& ids) {
  std::vector<std::string> result;
  for (const auto id : ids) result.push_back(graph.tensor(id).name);
  return result;
}

inline double number_at(const Value& value, std::size_t i) {
  switch (value.dtype) {
    case DType::f32:
      return static_cast<double>(value.data.as<float>()[i]);
    case DType::i64:
      return static_cast<double>(value.data.as<std::int64_t>()[i]);
    case DType::i8:
      return value.data.as<std::int8_t>()[i];
    case DType::u8:
      return value.data.as<std::uint8_t>()[i];
    default:
      return std::nan("");
  }
}

/// Both graphs give the same outputs for random inputs, up to `tolerance` of the largest value (at
/// least of one).
inline void expect_same_results(const Graph& before, const Graph& after, double tolerance = 1e-4) {
  const auto inputs = random_inputs(before, 7);
  const auto expected = evaluate(before, inputs);
  const auto actual = evaluate(after, inputs);
  ASSERT_TRUE(expected) << expected.error().message;
  ASSERT_TRUE(actual) << actual.error().message;
  ASSERT_EQ(expected->size(), actual->size());
  for (std::size_t o = 0; o < expected->size(); ++o) {
    const auto& want = (*expected)[o];
    const auto& got = (*actual)[o];
    ASSERT_EQ(want.dtype, got.dtype);
    ASSERT_EQ(want.shape, got.shape) << "output " << o;
    const auto count = static_cast<std::size_t>(elements(want.shape));
    double largest = 1;
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i) {
      largest = std::max(largest, std::abs(number_at(want, i)));
      const double difference = std::abs(number_at(want, i) - number_at(got, i));
      worst = std::isnan(difference) ? difference : std::max(worst, difference);
    }
    EXPECT_LE(worst, tolerance * largest) << "output " << o;
  }
}

/// What every pass keeps: a valid and sorted graph, shapes that inference confirms, names and order
/// of inputs and outputs, and the results.
inline void expect_equivalent(const Graph& before, const Graph& after, double tolerance = 1e-4) {
  const auto valid = validate(after);
  ASSERT_TRUE(valid) << valid.error().message;
  EXPECT_EQ(names(before, before.inputs), names(after, after.inputs));
  EXPECT_EQ(names(before, before.outputs), names(after, after.outputs));
  auto inferred = after;
  const auto status = infer_shapes(inferred);
  ASSERT_TRUE(status) << status.error().message;
  for (const auto& node : after.nodes) {
    for (const auto id : node.outputs) {
      if (id == kNoTensor) continue;
      EXPECT_EQ(after.tensor(id).shape, inferred.tensor(id).shape) << describe(node);
      EXPECT_EQ(after.tensor(id).dtype, inferred.tensor(id).dtype) << describe(node);
    }
  }
  expect_same_results(before, after, tolerance);
}

/// The graph after one pass, which must change it.
inline Graph after_pass(const Graph& before, std::string_view pass) {
  auto after = before;
  const auto changed = run_pass(after, pass);
  EXPECT_TRUE(changed) << changed.error().message;
  EXPECT_TRUE(changed && *changed) << pass << " found nothing to do";
  expect_equivalent(before, after);
  return after;
}

inline void expect_untouched(const Graph& before, std::string_view pass) {
  auto after = before;
  const auto changed = run_pass(after, pass);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_FALSE(*changed);
  EXPECT_EQ(first_difference(before, after), std::nullopt);
}

}  // namespace fleetfit::graph
