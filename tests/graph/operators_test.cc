#include "fleetfit/graph/operators.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/graph/operator_facts.h"
#include "graph/operator_fields.h"
#include "graph/operators/traits.h"

namespace fleetfit::graph {
namespace {

template <std::size_t... types>
std::vector<Operator> one_of_each(std::index_sequence<types...>) {
  return {std::variant_alternative_t<types, AnyOperator>{}...};
}

std::vector<Operator> one_of_each() {
  return one_of_each(std::make_index_sequence<std::variant_size_v<AnyOperator>>());
}

TEST(Operators, AreAllDescribed) {
  for (const auto& op : one_of_each()) {
    SCOPED_TRACE(op.index());
    ASSERT_EQ(traits(op).type, op.index());
    const bool may_be_nameless =
        std::holds_alternative<Unknown>(op) || std::holds_alternative<Activate>(op);
    EXPECT_NE(type_name(op).empty(), !may_be_nameless);
    const bool computes =
        !std::holds_alternative<Unknown>(op) && !std::holds_alternative<Constant>(op);
    EXPECT_EQ(traits(op).run != nullptr, computes);
  }
}

// The numbers are part of what is stored for a network's structure.
TEST(Operators, HaveTheNumbersThatTheyAlwaysHad) {
  const std::vector<std::string> names{"Conv",
                                       "ConvTranspose",
                                       "Gemm",
                                       "MatMul",
                                       "MultiHeadAttention",
                                       "BatchNormalization",
                                       "InstanceNormalization",
                                       "LayerNormalization",
                                       "PRelu",
                                       "MaxPool",
                                       "GlobalAveragePool",
                                       "LRN",
                                       "LpNormalization",
                                       "Softmax",
                                       "",
                                       "Abs",
                                       "Add",
                                       "Where",
                                       "Cast",
                                       "QuantizeLinear",
                                       "DequantizeLinear",
                                       "Requantize",
                                       "Concat",
                                       "Split",
                                       "Slice",
                                       "Pad",
                                       "Resize",
                                       "Transpose",
                                       "Reshape",
                                       "Flatten",
                                       "Squeeze",
                                       "Unsqueeze",
                                       "Expand",
                                       "Tile",
                                       "Gather",
                                       "Stack",
                                       "Unstack",
                                       "DepthToSpace",
                                       "SpaceToDepth",
                                       "SpaceToBatch",
                                       "BatchToSpace",
                                       "ChannelShuffle",
                                       "ReduceMean",
                                       "ArgMax",
                                       "TopK",
                                       "Constant",
                                       "ConstantOfShape",
                                       "Shape",
                                       "Range",
                                       "Identity",
                                       "Dropout"};
  std::set<std::size_t> numbers;
  for (const auto& op : one_of_each()) {
    const auto number = traits(op).number;
    EXPECT_TRUE(numbers.insert(number).second) << number << " is given twice";
    if (number < 1 || number > names.size()) continue;
    EXPECT_EQ(type_name(op), names[number - 1]);
  }
  EXPECT_EQ(*numbers.rbegin() + 1, numbers.size());
}

TEST(Operators, HaveTheirFieldsInOrder) {
  EXPECT_EQ(fields(Gemm{.alpha = 2, .trans_b = true}),
            std::make_tuple(2.0F, 1.0F, false, true, false));
  EXPECT_EQ(fields(ShapeOf{.start = 3, .end = 5}),
            std::make_tuple(std::int64_t{3}, std::optional<std::int64_t>(5), DType::i64));
  EXPECT_EQ(fields(PRelu{}), std::make_tuple());
}

TEST(Operators, AreReadFromEachNameOfAFormatByOneFamily) {
  std::set<std::string_view> onnx;
  std::set<std::string_view> tflite;
  for (const auto& reader : onnx_readers()) EXPECT_TRUE(onnx.insert(reader.type).second);
  for (const auto& family : operator_families()) {
    for (const auto& reader : family.tflite) EXPECT_TRUE(tflite.insert(reader.code).second);
  }
  EXPECT_TRUE(onnx.contains("Conv"));
  EXPECT_TRUE(tflite.contains("CONV_2D"));
}

TEST(Operators, SayWhatTheyAre) {
  EXPECT_TRUE(is_layer(Conv{}));
  EXPECT_FALSE(is_layer(MultiHeadAttention{}));
  EXPECT_TRUE(only_reshapes(Squeeze{}));
  EXPECT_TRUE(shares_memory(Concat{}));
  EXPECT_FALSE(shares_memory(Stack{}));
  EXPECT_EQ(layout_of(Pool{.layout = Layout::nhwc}), Layout::nhwc);
  EXPECT_EQ(layout_of(SpaceToBatch{}), Layout::nhwc);
  EXPECT_EQ(layout_of(Softmax{}), std::nullopt);
  EXPECT_EQ(activation_names().size(), 16U);
}

}  // namespace
}  // namespace fleetfit::graph
