#include "fleetfit/graph/operators.h"

#include <array>

namespace fleetfit::graph {
namespace {

template <class Kind, std::size_t n>
std::string_view name_of(const std::array<std::string_view, n>& names, Kind kind) {
  return names[static_cast<std::size_t>(kind)];
}

// Each in the order of its enum.
constexpr std::array<std::string_view, 16> kActivationNames = {
    "",          "Relu", "Clip", "LeakyRelu", "Elu",      "Sigmoid",  "HardSigmoid", "Tanh",
    "HardSwish", "Silu", "Gelu", "GeluTanh",  "Softplus", "Softsign", "Selu",        "Mish"};
constexpr std::array<std::string_view, 16> kUnaryNames = {
    "Abs",   "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Floor",  "Ceil",
    "Round", "Erf", "Sin", "Cos", "Sign", "Not",        "Square", "Rsqrt"};
constexpr std::array<std::string_view, 19> kElementwiseNames = {"Add",
                                                                "Sub",
                                                                "Mul",
                                                                "Div",
                                                                "Pow",
                                                                "Mod",
                                                                "Min",
                                                                "Max",
                                                                "Sum",
                                                                "Mean",
                                                                "Equal",
                                                                "Greater",
                                                                "Less",
                                                                "GreaterOrEqual",
                                                                "LessOrEqual",
                                                                "And",
                                                                "Or",
                                                                "Xor",
                                                                "SquaredDifference"};
constexpr std::array<std::string_view, 10> kReduceNames = {
    "ReduceMean", "ReduceSum", "ReduceMax",       "ReduceMin",    "ReduceProd",
    "ReduceL1",   "ReduceL2",  "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"};

struct TypeName {
  std::string_view operator()(const Unknown& op) const { return op.type; }
  std::string_view operator()(const Conv&) const { return "Conv"; }
  std::string_view operator()(const ConvTranspose&) const { return "ConvTranspose"; }
  std::string_view operator()(const Gemm&) const { return "Gemm"; }
  std::string_view operator()(const MatMul&) const { return "MatMul"; }
  std::string_view operator()(const MultiHeadAttention&) const { return "MultiHeadAttention"; }
  std::string_view operator()(const BatchNorm&) const { return "BatchNormalization"; }
  std::string_view operator()(const InstanceNorm&) const { return "InstanceNormalization"; }
  std::string_view operator()(const LayerNorm&) const { return "LayerNormalization"; }
  std::string_view operator()(const PRelu&) const { return "PRelu"; }
  std::string_view operator()(const Pool& op) const {
    return op.kind == PoolKind::max ? "MaxPool" : "AveragePool";
  }
  std::string_view operator()(const GlobalPool& op) const {
    return op.kind == PoolKind::max ? "GlobalMaxPool" : "GlobalAveragePool";
  }
  std::string_view operator()(const Lrn&) const { return "LRN"; }
  std::string_view operator()(const LpNormalization&) const { return "LpNormalization"; }
  std::string_view operator()(const Softmax& op) const { return op.log ? "LogSoftmax" : "Softmax"; }
  std::string_view operator()(const Activate& op) const { return type_name(op.function.kind); }
  std::string_view operator()(const Unary& op) const { return name_of(kUnaryNames, op.kind); }
  std::string_view operator()(const Elementwise& op) const {
    return name_of(kElementwiseNames, op.kind);
  }
  std::string_view operator()(const Where&) const { return "Where"; }
  std::string_view operator()(const Cast&) const { return "Cast"; }
  std::string_view operator()(const QuantizeLinear&) const { return "QuantizeLinear"; }
  std::string_view operator()(const DequantizeLinear&) const { return "DequantizeLinear"; }
  std::string_view operator()(const Requantize&) const { return "Requantize"; }
  std::string_view operator()(const Concat&) const { return "Concat"; }
  std::string_view operator()(const Split&) const { return "Split"; }
  std::string_view operator()(const Slice&) const { return "Slice"; }
  std::string_view operator()(const Pad&) const { return "Pad"; }
  std::string_view operator()(const Resize&) const { return "Resize"; }
  std::string_view operator()(const Transpose&) const { return "Transpose"; }
  std::string_view operator()(const Reshape&) const { return "Reshape"; }
  std::string_view operator()(const Flatten&) const { return "Flatten"; }
  std::string_view operator()(const Squeeze&) const { return "Squeeze"; }
  std::string_view operator()(const Unsqueeze&) const { return "Unsqueeze"; }
  std::string_view operator()(const Expand&) const { return "Expand"; }
  std::string_view operator()(const Tile&) const { return "Tile"; }
  std::string_view operator()(const Gather&) const { return "Gather"; }
  std::string_view operator()(const Stack&) const { return "Stack"; }
  std::string_view operator()(const Unstack&) const { return "Unstack"; }
  std::string_view operator()(const DepthToSpace&) const { return "DepthToSpace"; }
  std::string_view operator()(const SpaceToDepth&) const { return "SpaceToDepth"; }
  std::string_view operator()(const SpaceToBatch&) const { return "SpaceToBatch"; }
  std::string_view operator()(const BatchToSpace&) const { return "BatchToSpace"; }
  std::string_view operator()(const ChannelShuffle&) const { return "ChannelShuffle"; }
  std::string_view operator()(const Reduce& op) const { return name_of(kReduceNames, op.kind); }
  std::string_view operator()(const ArgExtreme& op) const {
    return op.smallest ? "ArgMin" : "ArgMax";
  }
  std::string_view operator()(const TopK&) const { return "TopK"; }
  std::string_view operator()(const Constant&) const { return "Constant"; }
  std::string_view operator()(const ConstantOfShape&) const { return "ConstantOfShape"; }
  std::string_view operator()(const ShapeOf&) const { return "Shape"; }
  std::string_view operator()(const Range&) const { return "Range"; }
  std::string_view operator()(const Identity&) const { return "Identity"; }
  std::string_view operator()(const Dropout&) const { return "Dropout"; }
};

}  // namespace

Operator::Operator() = default;
Operator::Operator(const Operator& other) = default;
Operator::Operator(Operator&& other) noexcept = default;
Operator::~Operator() = default;
Operator& Operator::operator=(const Operator& other) = default;
Operator& Operator::operator=(Operator&& other) noexcept = default;

bool Operator::operator==(const Operator& other) const {
  return static_cast<const AnyOperator&>(*this) == static_cast<const AnyOperator&>(other);
}

std::string_view type_name(const Operator& op) { return std::visit(TypeName{}, op); }

std::string_view type_name(ActivationKind kind) { return name_of(kActivationNames, kind); }

}  // namespace fleetfit::graph
