// What the engine refuses, and what it says then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "fleetfit/graph/net_builder.h"
#include "tests/engine/compare.h"

namespace fleetfit::engine {
namespace {

using graph::DType;
using graph::Graph;
using graph::NetBuilder;
using graph::Shape;
using graph::TensorId;
using testing::HasSubstr;

/// y = relu(x) with x of this shape.
Graph relu_of(std::optional<Shape> shape, DType dtype = DType::f32) {
  Graph graph;
  const TensorId x = graph.add_tensor({.name = "x", .dtype = dtype, .shape = std::move(shape)});
  const TensorId y = graph.add_tensor({.name = "y"});
  graph.inputs = {x};
  graph.outputs = {y};
  graph.nodes = {
      {.name = "relu", .op = graph::Activate{graph::kRelu}, .inputs = {x}, .outputs = {y}}};
  return graph;
}

void expect_refused(const Graph& graph, ErrorCode code, const std::string& message) {
  const auto program = Program::prepare(graph, {.choosing = Choosing::fixed});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, code) << program.error().message;
  EXPECT_THAT(program.error().message, HasSubstr(message));
  EXPECT_THAT(program.error().message, testing::Not(HasSubstr("\n")));
}

TEST(BadInput, UnsupportedOperatorsAreAllListed) {
  Graph graph = relu_of(Shape{3});
  const auto add_unknown = [&](const std::string& name, const std::string& type, TensorId from) {
    const TensorId to = graph.add_tensor({.name = name + "_out"});
    graph.nodes.push_back({.name = name,
                           .op = graph::Unknown{.type = type, .reason = "because of " + type},
                           .inputs = {from},
                           .outputs = {to}});
    return to;
  };
  const TensorId first = add_unknown("first", "Wave", graph.outputs[0]);
  const TensorId between = graph.add_tensor({.name = "between"});
  graph.nodes.push_back({.name = "after",
                         .op = graph::Activate{graph::kRelu},
                         .inputs = {first},
                         .outputs = {between}});
  graph.outputs = {add_unknown("second", "Particle", between)};
  const auto program = Program::prepare(graph);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::unsupported);
  // "after" is no fault of its own.
  EXPECT_EQ(program.error().message,
            "2 operators cannot be run: node first (Wave): because of Wave; "
            "node second (Particle): because of Particle");
}

TEST(BadInput, AResultWhoseShapeOnlyValuesTellIsUnsupported) {
  Graph graph;
  const TensorId x = graph.add_tensor({.name = "x", .dtype = DType::f32, .shape = Shape{6}});
  const TensorId shape =
      graph.add_tensor({.name = "shape", .dtype = DType::i64, .shape = Shape{2}});
  const TensorId y = graph.add_tensor({.name = "y"});
  graph.inputs = {x, shape};
  graph.outputs = {y};
  graph.nodes = {{.name = "r", .op = graph::Reshape{}, .inputs = {x, shape}, .outputs = {y}}};
  expect_refused(
      graph, ErrorCode::unsupported,
      "1 operator cannot be run: node r (Reshape): tensor 'y' has no shape that is known "
      "before it runs");
}

Graph scaled_by(DType dtype, graph::TensorData data) {
  Graph graph = relu_of(Shape{2}, dtype);
  const TensorId weight = graph.add_tensor(
      {.name = "gain", .dtype = dtype, .shape = Shape{2}, .data = std::move(data)});
  const TensorId product = graph.add_tensor({.name = "product"});
  graph.nodes.push_back({.name = "mul",
                         .op = graph::Elementwise{graph::ElementwiseKind::mul},
                         .inputs = {graph.outputs[0], weight},
                         .outputs = {product}});
  graph.outputs = {product};
  return graph;
}

TEST(BadInput, WeightsThatAreNoNumbersAreNamed) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::string message = "weight 'gain' is not a number at element 1";
  expect_refused(scaled_by(DType::f32, graph::TensorData::copy(std::vector<float>{1, kNan})),
                 ErrorCode::invalid_input, message);
  expect_refused(scaled_by(DType::f64, graph::TensorData::copy(std::vector<double>{1, kNan})),
                 ErrorCode::invalid_input, message);
  const std::vector<std::uint16_t> half{0x7C00, 0xFE00};  // infinity, then no number
  expect_refused(scaled_by(DType::f16, graph::TensorData::copy(half)), ErrorCode::invalid_input,
                 message);
  const std::vector<std::uint16_t> brain{0xFF80, 0x7FC0};
  expect_refused(scaled_by(DType::bf16, graph::TensorData::copy(brain)), ErrorCode::invalid_input,
                 message);
}

TEST(BadInput, InfiniteWeightsAreAllowed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto graph =
      scaled_by(DType::f32, graph::TensorData::copy(std::vector<float>{kInfinity, -kInfinity}));
  EXPECT_TRUE(Program::prepare(graph, {.choosing = Choosing::fixed}));
}

TEST(BadInput, EmptyInputsAreNamed) {
  expect_refused(relu_of(Shape{1, 3, 0, 8}), ErrorCode::invalid_input,
                 "input 'x' is empty: 1x3x0x8");
}

TEST(BadInput, OpenInputsAreNamed) {
  expect_refused(relu_of(std::nullopt), ErrorCode::invalid_input,
                 "input 'x' has no shape that is known before it runs");
}

TEST(BadInput, InputsWithoutTypeAreNamed) {
  expect_refused(relu_of(Shape{2}, DType::unknown), ErrorCode::invalid_input,
                 "input 'x' has no known type");
  expect_refused(relu_of(Shape{2}, DType::text), ErrorCode::invalid_input, "input 'x' holds text");
}

TEST(BadInput, BrokenGraphsAreInvalid) {
  Graph graph = relu_of(Shape{2});
  graph.nodes[0].inputs = {17};
  expect_refused(graph, ErrorCode::invalid_input, "relu");
}

TEST(BadInput, OperandsThatDoNotFitAreNamed) {
  Graph graph = relu_of(Shape{2});
  const TensorId other = graph.add_tensor({.name = "z", .dtype = DType::f32, .shape = Shape{3}});
  graph.inputs.push_back(other);
  graph.nodes[0] = {.name = "sum",
                    .op = graph::Elementwise{graph::ElementwiseKind::add},
                    .inputs = {graph.inputs[0], other},
                    .outputs = graph.outputs};
  expect_refused(graph, ErrorCode::invalid_input, "node sum (Add)");
}

TEST(BadInput, ThreadsMustBePositive) {
  for (const int threads : {0, -3}) {
    const auto program =
        Program::prepare(relu_of(Shape{2}), {.threads = threads, .choosing = Choosing::fixed});
    ASSERT_FALSE(program);
    EXPECT_EQ(program.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(program.error().message, HasSubstr("threads"));
  }
}

TEST(BadInput, ValuesOfAnotherShapeOrTypeAreNotTaken) {
  auto program = Program::prepare(relu_of(Shape{2, 3}), {.choosing = Choosing::fixed}).value();
  const auto value = [](DType dtype, Shape shape, std::size_t bytes) {
    return graph::Value{
        dtype, std::move(shape), graph::TensorData::own(std::vector<std::byte>(bytes)), {}};
  };
  EXPECT_TRUE(program.set_input(0, value(DType::f32, {2, 3}, 24)));
  const auto shape = program.set_input(0, value(DType::f32, {3, 2}, 24));
  ASSERT_FALSE(shape);
  EXPECT_EQ(shape.error().code, ErrorCode::invalid_input);
  EXPECT_EQ(shape.error().message, "input 'x' is to be float32 2x3 and is float32 3x2");
  const auto type = program.set_input(0, value(DType::i32, {2, 3}, 24));
  ASSERT_FALSE(type);
  EXPECT_EQ(type.error().code, ErrorCode::invalid_input);
  const auto bytes = program.set_input(0, value(DType::f32, {2, 3}, 20));
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::invalid_input);
  const auto place = program.set_input(1, value(DType::f32, {2, 3}, 24));
  ASSERT_FALSE(place);
  EXPECT_EQ(place.error().code, ErrorCode::invalid_input);
}

TEST(BadInput, AnIndexOutOfRangeIsAnErrorOfTheRun) {
  Graph graph;
  const TensorId x = graph.add_tensor({.name = "x", .dtype = DType::f32, .shape = Shape{4, 3}});
  const TensorId at = graph.add_tensor({.name = "at", .dtype = DType::i64, .shape = Shape{2}});
  const TensorId y = graph.add_tensor({.name = "y"});
  graph.inputs = {x, at};
  graph.outputs = {y};
  graph.nodes = {{.name = "pick", .op = graph::Gather{}, .inputs = {x, at}, .outputs = {y}}};
  auto program = Program::prepare(graph, {.choosing = Choosing::fixed}).value();
  const auto set = [&](std::int64_t index) {
    const std::vector<std::int64_t> indices{0, index};
    ASSERT_TRUE(program.set_input(1, {DType::i64, {2}, graph::TensorData::copy(indices), {}}));
  };
  set(3);
  EXPECT_TRUE(program.run());
  for (const std::int64_t bad : {4L, -5L, 1L << 40, std::numeric_limits<std::int64_t>::min()}) {
    set(bad);
    const auto status = program.run();
    ASSERT_FALSE(status) << bad;
    EXPECT_EQ(status.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(status.error().message, HasSubstr("pick"));
  }
  set(-4);  // counts from the end; the errors before left nothing behind
  EXPECT_TRUE(program.run());
}

TEST(BadInput, MoreMemoryThanThereIsIsAnError) {
  Graph graph = relu_of(Shape{1 << 20, 1 << 19});  // two terabytes
  const auto program = Program::prepare(graph, {.choosing = Choosing::fixed});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(program.error().message, HasSubstr("memory"));
}

}  // namespace
}  // namespace fleetfit::engine
