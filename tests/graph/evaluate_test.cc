#include "fleetfit/graph/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/evaluate/kernels.h"
#include "graph/evaluate/values.h"
#include "tests/graph/evaluate_helpers.h"

namespace fleetfit::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

TEST(Half, RoundsToTheNearestEvenAndOverflowsToInfinity) {
  using interpreter::encode_half;
  using interpreter::kIeeeHalf;
  EXPECT_EQ(encode_half(1, kIeeeHalf), 0x3c00);
  EXPECT_EQ(encode_half(-2, kIeeeHalf), 0xc000);
  EXPECT_EQ(encode_half(65504, kIeeeHalf), 0x7bff);
  EXPECT_EQ(encode_half(65520, kIeeeHalf), 0x7c00);
  EXPECT_EQ(encode_half(1 + 0x1p-11, kIeeeHalf), 0x3c00);
  EXPECT_EQ(encode_half(1 + 0x1.8p-10, kIeeeHalf), 0x3c02);
  EXPECT_EQ(encode_half(0x1p-24, kIeeeHalf), 0x0001);
  EXPECT_EQ(encode_half(0x1p-25, kIeeeHalf), 0x0000);
  EXPECT_EQ(encode_half(1, interpreter::kBrainFloat), 0x3f80);
  EXPECT_EQ(encode_half(3.14159, interpreter::kBrainFloat), 0x4049);
}

TEST(Half, EveryNumberSurvivesDecodingAndEncoding) {
  for (const auto format : {interpreter::kIeeeHalf, interpreter::kBrainFloat}) {
    for (int bits = 0; bits < 0x10000; ++bits) {
      const double value = interpreter::decode_half(static_cast<std::uint16_t>(bits), format);
      if (std::isnan(value)) continue;
      ASSERT_EQ(interpreter::encode_half(value, format), bits);
    }
  }
}

struct ActivationCase {
  Activation activation;
  double x;
  double y;
};

class ActivationValue : public ::testing::TestWithParam<ActivationCase> {};

TEST_P(ActivationValue, IsThePublishedOne) {
  const auto& [activation, x, y] = GetParam();
  EXPECT_NEAR(interpreter::apply(activation, x), y, 1e-6);
}

// Values of PyTorch's functions of the same names.
INSTANTIATE_TEST_SUITE_P(
    All, ActivationValue,
    ::testing::Values(ActivationCase{kRelu, -1, 0}, ActivationCase{kRelu6, 7, 6},
                      ActivationCase{{ActivationKind::leaky_relu, 0.1F}, -2, -0.2},
                      ActivationCase{{ActivationKind::elu, 1}, -1, -0.6321206},
                      ActivationCase{kSigmoid, 1, 0.7310586},
                      ActivationCase{kHardSigmoid, 1, 2.0 / 3}, ActivationCase{kTanh, 1, 0.7615942},
                      ActivationCase{kHardSwish, 1, 2.0 / 3}, ActivationCase{kHardSwish, -4, 0},
                      ActivationCase{kSilu, 1, 0.7310586}, ActivationCase{kGelu, 1, 0.8413447},
                      ActivationCase{{ActivationKind::gelu_tanh}, 1, 0.8411920},
                      ActivationCase{{ActivationKind::softplus}, 1, 1.3132617},
                      ActivationCase{{ActivationKind::softplus}, 1000, 1000},
                      ActivationCase{{ActivationKind::softsign}, -1, -0.5},
                      ActivationCase{kSelu, -1, -1.1113307},
                      ActivationCase{{ActivationKind::mish}, 1, 0.8650984}));

TEST(Evaluate, WholeNumbersDivideTowardsZeroAndWrapAround) {
  const auto a = int_list({7, -7, kLowest, kLowest});
  const auto b = int_list({2, 2, -1, 1});
  EXPECT_THAT(numbers_of<std::int64_t>(result_of(Elementwise{ElementwiseKind::div}, {a, b})),
              ElementsAre(3, -3, kLowest, kLowest));
  EXPECT_THAT(numbers_of<std::int64_t>(result_of(Elementwise{ElementwiseKind::mod}, {a, b})),
              ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(numbers_of<std::int64_t>(result_of(Elementwise{ElementwiseKind::sub}, {a, b})),
              ElementsAre(5, -9, kLowest + 1, std::numeric_limits<std::int64_t>::max()));
}

TEST(Evaluate, DivisionOfAWholeNumberByZeroIsAnError) {
  for (const auto kind : {ElementwiseKind::div, ElementwiseKind::mod}) {
    const auto result = run_operator(Elementwise{kind}, {int_list({1}), int_list({0})});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(result.error().message, HasSubstr("it"));
  }
}

TEST(Evaluate, BroadcastsLikeNumpy) {
  const auto sum = result_of(Elementwise{ElementwiseKind::add},
                             {floats({2, 1}, {10, 20}), floats({3}, {1, 2, 3})});
  EXPECT_EQ(sum.shape, (Shape{2, 3}));
  EXPECT_THAT(numbers_of<float>(sum), ElementsAre(11, 12, 13, 21, 22, 23));
}

TEST(Evaluate, CastsSaturateFloatsAndWrapWholeNumbers) {
  const auto bytes = result_of(Cast{DType::i8}, {floats({4}, {1.9F, -1.9F, 300, NAN})});
  EXPECT_THAT(numbers_of<std::int8_t>(bytes), ElementsAre(1, -1, 127, 0));
  const auto wrapped = result_of(Cast{DType::u8}, {int_list({257, -1})});
  EXPECT_THAT(numbers_of<std::uint8_t>(wrapped), ElementsAre(1, 255));
  const auto truths = result_of(Cast{DType::boolean}, {floats({3}, {0, 0.5F, -2})});
  EXPECT_THAT(numbers_of<std::uint8_t>(truths), ElementsAre(0, 1, 1));
}

TEST(Evaluate, LargeWholeNumbersPassAnActivationUnchanged) {
  const auto x = int_list({(std::int64_t{1} << 60) + 1, -5});
  EXPECT_THAT(numbers_of<std::int64_t>(result_of(Activate{kRelu}, {x})),
              ElementsAre((std::int64_t{1} << 60) + 1, 0));
}

TEST(Evaluate, HalfPrecisionIsComputedWiderAndRoundedOnce) {
  const auto x = value_of<std::uint16_t>(DType::f16, {2}, {0x3c00, 0x4200});  // 1, 3
  const auto sum = result_of(Elementwise{ElementwiseKind::add}, {x, x});
  EXPECT_EQ(sum.dtype, DType::f16);
  EXPECT_THAT(numbers_of<std::uint16_t>(sum), ElementsAre(0x4000, 0x4600));  // 2, 6
}

TEST(Evaluate, NormalizesAcrossNeighbouringChannels) {
  const Lrn op{.size = 2, .alpha = 2, .beta = 1, .bias = 1};
  // Each channel sees itself and the next: 1 + 1^2 + 2^2, 1 + 2^2 + 3^2, 1 + 3^2.
  const auto y = result_of(op, {floats({1, 3, 1, 1}, {1, 2, 3})});
  EXPECT_THAT(numbers_of<float>(y), Pointwise(FloatNear(1e-6F), {1.0F / 6, 2.0F / 14, 3.0F / 10}));
}

TEST(Evaluate, DividesByTheNorm) {
  const auto x = floats({2, 2}, {3, 4, 0, 0});
  EXPECT_THAT(numbers_of<float>(result_of(LpNormalization{}, {x})),
              Pointwise(FloatNear(1e-6F), {0.6F, 0.8F, 0.0F, 0.0F}));
  EXPECT_THAT(numbers_of<float>(result_of(LpNormalization{.p = 1}, {x})),
              Pointwise(FloatNear(1e-6F), {3.0F / 7, 4.0F / 7, 0.0F, 0.0F}));
}

TEST(Evaluate, SoftmaxCanRunOverAllDimensionsFromTheAxisOn) {
  const auto x = floats({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_THAT(numbers_of<float>(result_of(Softmax{.axis = 1, .to_end = true}, {x})),
              ElementsAre(0.25F, 0.25F, 0.25F, 0.25F));
  EXPECT_THAT(numbers_of<float>(result_of(Softmax{.axis = 1}, {x})),
              ElementsAre(0.5F, 0.5F, 0.5F, 0.5F));
}

TEST(Evaluate, MultipliesMatricesInEveryOrientation) {
  const auto a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto a_transposed = floats({3, 2}, {1, 4, 2, 5, 3, 6});
  const auto b = floats({3, 1}, {1, 10, 100});
  const auto b_transposed = floats({1, 3}, {1, 10, 100});
  for (const bool left : {false, true}) {
    for (const bool right : {false, true}) {
      const std::vector operands{left ? a_transposed : a, right ? b_transposed : b};
      EXPECT_THAT(numbers_of<float>(result_of(MatMul{left, right}, operands)),
                  ElementsAre(321, 654));
      EXPECT_THAT(numbers_of<float>(
                      result_of(Gemm{.alpha = 2, .trans_a = left, .trans_b = right}, operands)),
                  ElementsAre(642, 1308));
    }
  }
}

TEST(Evaluate, GemmKeepsLeadingExtentsIfAsked) {
  const auto x = counting({2, 2, 2});
  const auto w = floats({1, 2}, {1, 1});
  const auto bias = floats({1}, {0.5F});
  const auto y = result_of(Gemm{.trans_b = true, .keep_leading = true}, {x, w, bias});
  EXPECT_EQ(y.shape, (Shape{2, 2, 1}));
  EXPECT_THAT(numbers_of<float>(y), ElementsAre(1.5F, 5.5F, 9.5F, 13.5F));
}

TEST(Evaluate, AttentionAveragesValuesByLikeness) {
  // Two heads of one feature each; projections keep everything as it is.
  const auto identity = floats({2, 2}, {1, 0, 0, 1});
  const auto zero = floats({2}, {0, 0});
  const auto q = floats({1, 2}, {1, 0});
  const auto k = floats({2, 2}, {0, 5, std::log(3.0F), 7});
  const auto v = floats({2, 2}, {0, 2, 4, 4});
  const auto y = result_of(MultiHeadAttention{.heads = 2}, {q, k, v, identity, zero, identity, zero,
                                                            identity, zero, identity, zero});
  // Head 0 weighs 1 : 3, head 1 has a query of zero and weighs 1 : 1.
  EXPECT_THAT(numbers_of<float>(y), Pointwise(FloatNear(1e-6F), {3.0F, 3.0F}));
}

TEST(Evaluate, IsNaNTellsNumbersFromWhatIsNone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const auto y = result_of(IsNaN{}, {floats({2, 3}, {0, kNaN, kInfinity, -kInfinity, -kNaN, 1})});
  EXPECT_EQ(y.dtype, DType::boolean);
  EXPECT_EQ(y.shape, (Shape{2, 3}));
  EXPECT_THAT(numbers_of<std::uint8_t>(y), ElementsAre(0, 1, 0, 0, 1, 0));
  // In half precision 0x7c00 is infinity, and what lies above it is no number.
  const auto half = value_of<std::uint16_t>(DType::f16, {3}, {0x3c00, 0x7c00, 0x7e00});
  EXPECT_THAT(numbers_of<std::uint8_t>(result_of(IsNaN{}, {half})), ElementsAre(0, 0, 1));
}

TEST(Evaluate, RefusesOperandsThatDoNotFit) {
  const auto short_data = Value{DType::f32, {4}, TensorData::copy(std::vector<float>{1}), {}};
  EXPECT_EQ(run_operator(Activate{kRelu}, {short_data}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(run_operator(Conv{}, {counting({1})}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(run_operator(Elementwise{}, {counting({2}), counting({3})}).error().code,
            ErrorCode::invalid_input);
}

TEST(Evaluate, RefusesResultsThatAreTooLarge) {
  for (const auto& shape : {Ints{1 << 20, 1 << 12}, Ints{0, std::int64_t{1} << 35}}) {
    const auto result = run_operator(ConstantOfShape{}, {int_list(shape)});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::invalid_input);
  }
}

TEST(Evaluate, DoesNotKnowUnknownOperatorsAndTexts) {
  EXPECT_EQ(run_operator(Unknown{.type = "Foo"}, {}).error().code, ErrorCode::unsupported);
  const Value text{DType::text, {1}, TensorData::own({}), {}};
  EXPECT_EQ(run_operator(Identity{}, {text}).error().code, ErrorCode::unsupported);
}

/// y = relu(x * w) where the product is read once more.
Graph small_graph() {
  Graph graph;
  const auto x = graph.add_tensor({.name = "x", .dtype = DType::f32, .shape = Shape{3}});
  const auto w = graph.add_tensor({.name = "w",
                                   .dtype = DType::f32,
                                   .shape = Shape{3},
                                   .data = TensorData::copy(std::vector<float>{1, -1, 2})});
  const auto product = graph.add_tensor({.name = "product"});
  const auto y = graph.add_tensor({.name = "y"});
  const auto z = graph.add_tensor({.name = "z"});
  graph.inputs = {x};
  graph.outputs = {z, product};
  graph.nodes = {{.name = "mul",
                  .op = Elementwise{ElementwiseKind::mul},
                  .inputs = {x, w},
                  .outputs = {product}},
                 {.name = "relu", .op = Activate{kRelu}, .inputs = {product}, .outputs = {y}},
                 {.name = "add",
                  .op = Elementwise{ElementwiseKind::add},
                  .inputs = {y, y},
                  .outputs = {z},
                  .activation = {ActivationKind::clip, 0, 5}}};
  return graph;
}

TEST(EvaluateGraph, RunsNodesInOrderWithFusedActivations) {
  const std::vector inputs{floats({3}, {1, 2, 3})};
  const auto results = evaluate(small_graph(), inputs).value();
  EXPECT_THAT(numbers_of<float>(results[0]), ElementsAre(2, 0, 5));
  EXPECT_THAT(numbers_of<float>(results[1]), ElementsAre(1, -2, 6));
}

TEST(EvaluateGraph, RefusesInputsOfAnotherShapeOrType) {
  const auto graph = small_graph();
  EXPECT_FALSE(evaluate(graph, std::vector<Value>{}));
  EXPECT_FALSE(evaluate(graph, std::vector{counting({4})}));
  EXPECT_FALSE(evaluate(graph, std::vector{int_list({1, 2, 3})}));
}

TEST(EvaluateGraph, RandomInputsDependOnTheSeedAlone) {
  const auto graph = small_graph();
  const auto a = random_inputs(graph, 1);
  EXPECT_TRUE(a[0].data == random_inputs(graph, 1)[0].data);
  EXPECT_FALSE(a[0].data == random_inputs(graph, 2)[0].data);
  EXPECT_EQ(a[0].shape, (Shape{3}));
}

}  // namespace
}  // namespace fleetfit::graph
