#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fleetfit/graph/tensor_data.h"

/// The operators of a graph.
///
/// Each means what the ONNX operator of the same name means in opset 17, with the same inputs in
/// the same order, and with these additions:
///  - operators on images carry a `layout`: with nhwc, activations are NHWC and weights of
///  convolutions are
///    output x kernel… x input/groups (also for transposed ones, for which nchw means ONNX's
///    input x output/groups x kernel…);
///  - any node may apply an Activation to its first output (Node::activation);
///  - a tensor may be quantized (Tensor::quantization); an operator on quantized tensors computes
///  on the
///    real values that they stand for;
///  - the bounds of Clip and the axes of reductions are attributes, not inputs.
/// What ONNX keeps in inputs (the shape of Reshape, the starts of Slice, …) is an input here too.
namespace fleetfit::graph {

using Ints = std::vector<std::int64_t>;

enum class Layout : std::uint8_t { nchw, nhwc };

enum class ActivationKind : std::uint8_t {
  none,
  relu,
  clip,        ///< between alpha and beta; ReLU6 is clip(0, 6)
  leaky_relu,  ///< slope alpha below zero
  elu,         ///< alpha
  sigmoid,
  hard_sigmoid,  ///< max(0, min(1, alpha * x + beta))
  tanh,
  hard_swish,
  silu,
  gelu,       ///< with the error function
  gelu_tanh,  ///< the approximation with tanh
  softplus,
  softsign,
  selu,  ///< beta times ELU with alpha
  mish,
};

/// An element-wise function of one tensor.
struct Activation {
  ActivationKind kind = ActivationKind::none;
  float alpha = 0;
  float beta = 0;

  bool operator==(const Activation&) const = default;
  explicit operator bool() const { return kind != ActivationKind::none; }
};

inline constexpr Activation kRelu{ActivationKind::relu};
inline constexpr Activation kRelu6{ActivationKind::clip, 0, 6};
inline constexpr Activation kSigmoid{ActivationKind::sigmoid};
inline constexpr Activation kHardSigmoid{ActivationKind::hard_sigmoid, 1.0F / 6.0F, 0.5F};
inline constexpr Activation kHardSwish{ActivationKind::hard_swish};
inline constexpr Activation kTanh{ActivationKind::tanh};
inline constexpr Activation kSilu{ActivationKind::silu};
inline constexpr Activation kGelu{ActivationKind::gelu};
inline constexpr Activation kSelu{ActivationKind::selu, 1.67326319217681884765625F,
                                  1.05070102214813232421875F};

enum class AutoPad : std::uint8_t { explicit_pads, same_upper, same_lower, valid };

/// A window that slides over the spatial dimensions. All lists have one entry for each of them.
struct Window {
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints pads_begin;  ///< used with explicit_pads, else zero
  Ints pads_end;
  AutoPad auto_pad = AutoPad::explicit_pads;
  bool ceil_mode = false;

  bool operator==(const Window&) const = default;
};

// --- Operators with weights
// -------------------------------------------------------------------------------

/// Inputs: x, weights, [bias].
struct Conv {
  Window window;
  std::int64_t groups = 1;
  Layout layout = Layout::nchw;
  bool operator==(const Conv&) const = default;
};

/// Inputs: x, weights, [bias].
struct ConvTranspose {
  Window window;
  std::int64_t groups = 1;
  Ints output_padding;  ///< one for each spatial dimension
  Ints output_shape;    ///< spatial extents that the pads are derived from; empty: pads as given
  Layout layout = Layout::nchw;
  bool operator==(const ConvTranspose&) const = default;
};

/// alpha * A * B + beta * C. Inputs: A, B, [C]. An A of any other shape is read as rows of as many
/// elements as B takes; the result is a matrix, or keeps A's leading extents with `keep_leading`.
struct Gemm {
  float alpha = 1;
  float beta = 1;
  bool trans_a = false;
  bool trans_b = false;
  bool keep_leading = false;
  bool operator==(const Gemm&) const = default;
};

/// Batched product with numpy's rules. `trans_*` swap the last two dimensions of an operand.
struct MatMul {
  bool trans_a = false;
  bool trans_b = false;
  bool operator==(const MatMul&) const = default;
};

/// softmax(Q K^T / sqrt(d)) V with projections. Inputs: q, k, v (sequence x features, with or
/// without a batch before), then weights and bias of the q, k, v and output projections (features x
/// features; features).
struct MultiHeadAttention {
  std::int64_t heads = 1;
  bool operator==(const MultiHeadAttention&) const = default;
};

/// Inputs: x, scale, shift, mean, variance.
struct BatchNorm {
  float epsilon = 1e-5F;
  Layout layout = Layout::nchw;
  bool operator==(const BatchNorm&) const = default;
};

/// Inputs: x, scale, shift (one per channel).
struct InstanceNorm {
  float epsilon = 1e-5F;
  bool operator==(const InstanceNorm&) const = default;
};

/// Normalizes over the dimensions from `axis` on. Inputs: x, scale, [shift].
struct LayerNorm {
  std::int64_t axis = -1;
  float epsilon = 1e-5F;
  bool operator==(const LayerNorm&) const = default;
};

/// Inputs: x, slope.
struct PRelu {
  bool operator==(const PRelu&) const = default;
};

// --- Pooling, normalization without weights, activations
// ----------------------------------------------------

enum class PoolKind : std::uint8_t { max, average };

struct Pool {
  PoolKind kind = PoolKind::max;
  Window window;
  bool count_include_pad = false;
  Layout layout = Layout::nchw;
  bool operator==(const Pool&) const = default;
};

/// Pools each channel to one element, keeping the rank.
struct GlobalPool {
  PoolKind kind = PoolKind::average;
  Layout layout = Layout::nchw;
  bool operator==(const GlobalPool&) const = default;
};

/// Local response normalization across channels.
struct Lrn {
  std::int64_t size = 1;
  float alpha = 1e-4F;
  float beta = 0.75F;
  float bias = 1;
  Layout layout = Layout::nchw;
  bool operator==(const Lrn&) const = default;
};

/// Divides by the p-norm along the axis; p is 1 or 2.
struct LpNormalization {
  std::int64_t axis = -1;
  std::int64_t p = 2;
  bool operator==(const LpNormalization&) const = default;
};

struct Softmax {
  std::int64_t axis = -1;
  bool to_end = false;  ///< over all dimensions from `axis` on together (opsets before 13)
  bool log = false;
  bool operator==(const Softmax&) const = default;
};

/// An activation as a node of its own.
struct Activate {
  Activation function;
  bool operator==(const Activate&) const = default;
};

// --- Element-wise
// -------------------------------------------------------------------------------------------

enum class UnaryKind : std::uint8_t {
  abs,
  neg,
  exp,
  log,
  sqrt,
  reciprocal,
  floor,
  ceil,
  round,
  erf,
  sin,
  cos,
  sign,
  logical_not,
  square,
  rsqrt,  // TFLite's; exported as Mul and Sqrt + Reciprocal
};

struct Unary {
  UnaryKind kind = UnaryKind::abs;
  bool operator==(const Unary&) const = default;
};

enum class ElementwiseKind : std::uint8_t {
  add,
  sub,
  mul,
  div,
  pow,
  mod,
  min,
  max,
  sum,
  mean,
  equal,
  greater,
  less,
  greater_or_equal,
  less_or_equal,
  logical_and,
  logical_or,
  logical_xor,
  squared_difference,  // TFLite's; exported as Sub and Mul
};

/// Two inputs with numpy's broadcasting; min, max, sum and mean take any number.
struct Elementwise {
  ElementwiseKind kind = ElementwiseKind::add;
  bool operator==(const Elementwise&) const = default;
};

/// Inputs: condition, a, b.
struct Where {
  bool operator==(const Where&) const = default;
};

struct Cast {
  DType to = DType::f32;
  bool operator==(const Cast&) const = default;
};

/// real -> stored. Inputs: x, scale, [zero point].
struct QuantizeLinear {
  std::int64_t axis = 1;
  bool operator==(const QuantizeLinear&) const = default;
};

/// stored -> real. Inputs: x, scale, [zero point].
struct DequantizeLinear {
  std::int64_t axis = 1;
  bool operator==(const DequantizeLinear&) const = default;
};

/// TFLite's QUANTIZE and DEQUANTIZE: from the quantization of the input to that of the output;
/// either may have none. One input.
struct Requantize {
  DType to = DType::f32;
  bool operator==(const Requantize&) const = default;
};

// --- Moving data
// --------------------------------------------------------------------------------------------

struct Concat {
  std::int64_t axis = 0;
  bool operator==(const Concat&) const = default;
};

/// Inputs: x, [sizes]. Without sizes: equal parts, one for each output.
struct Split {
  std::int64_t axis = 0;
  bool operator==(const Split&) const = default;
};

/// Inputs: x, starts, ends, [axes], [steps]. The dimensions in `squeezed` (each left with one
/// element) are then dropped.
struct Slice {
  Ints squeezed;
  bool operator==(const Slice&) const = default;
};

enum class PadMode : std::uint8_t { constant, reflect, edge };

/// Inputs: x, pads (begins, then ends), [value].
struct Pad {
  PadMode mode = PadMode::constant;
  bool operator==(const Pad&) const = default;
};

enum class ResizeMode : std::uint8_t { nearest, linear, cubic };
enum class CoordinateMode : std::uint8_t {
  half_pixel,
  pytorch_half_pixel,
  align_corners,
  asymmetric
};
enum class NearestMode : std::uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };

/// Inputs: x, [region of interest], [scales], [sizes]; one of scales and sizes.
struct Resize {
  ResizeMode mode = ResizeMode::nearest;
  CoordinateMode coordinates = CoordinateMode::half_pixel;
  NearestMode nearest = NearestMode::round_prefer_floor;
  float cubic_coefficient = -0.75F;
  bool operator==(const Resize&) const = default;
};

struct Transpose {
  Ints perm;
  bool operator==(const Transpose&) const = default;
};

/// Inputs: x, shape (0 copies the input's extent unless allow_zero; one -1 takes the rest).
struct Reshape {
  bool allow_zero = false;
  bool operator==(const Reshape&) const = default;
};

struct Flatten {
  std::int64_t axis = 1;
  bool operator==(const Flatten&) const = default;
};

/// Inputs: x, [axes].
struct Squeeze {
  bool operator==(const Squeeze&) const = default;
};

/// Inputs: x, axes.
struct Unsqueeze {
  bool operator==(const Unsqueeze&) const = default;
};

/// Inputs: x, shape.
struct Expand {
  bool operator==(const Expand&) const = default;
};

/// Inputs: x, repeats.
struct Tile {
  bool operator==(const Tile&) const = default;
};

/// Inputs: x, indices.
struct Gather {
  std::int64_t axis = 0;
  bool operator==(const Gather&) const = default;
};

/// Joins tensors along a new axis (TFLite's PACK).
struct Stack {
  std::int64_t axis = 0;
  bool operator==(const Stack&) const = default;
};

/// One output for each index of the axis, which is dropped (TFLite's UNPACK).
struct Unstack {
  std::int64_t axis = 0;
  bool operator==(const Unstack&) const = default;
};

struct DepthToSpace {
  std::int64_t block = 1;
  bool column_row_depth = false;  ///< ONNX's CRD mode
  Layout layout = Layout::nchw;
  bool operator==(const DepthToSpace&) const = default;
};

struct SpaceToDepth {
  std::int64_t block = 1;
  Layout layout = Layout::nchw;
  bool operator==(const SpaceToDepth&) const = default;
};

/// TFLite's SPACE_TO_BATCH_ND on NHWC. Inputs: x, block, pads (spatial x 2).
struct SpaceToBatch {
  bool operator==(const SpaceToBatch&) const = default;
};

/// TFLite's BATCH_TO_SPACE_ND on NHWC. Inputs: x, block, crops (spatial x 2).
struct BatchToSpace {
  bool operator==(const BatchToSpace&) const = default;
};

/// Reads channels as groups x rest and swaps the two.
struct ChannelShuffle {
  std::int64_t groups = 1;
  Layout layout = Layout::nchw;
  bool operator==(const ChannelShuffle&) const = default;
};

// --- Reductions and selection
// -------------------------------------------------------------------------------

enum class ReduceKind : std::uint8_t {
  mean,
  sum,
  max,
  min,
  prod,
  l1,
  l2,
  sum_square,
  log_sum,
  log_sum_exp
};

/// No axes: over all dimensions.
struct Reduce {
  ReduceKind kind = ReduceKind::mean;
  Ints axes;
  bool keep_dims = true;
  bool operator==(const Reduce&) const = default;
};

struct ArgExtreme {
  bool smallest = false;  ///< ArgMin, else ArgMax
  std::int64_t axis = 0;
  bool keep_dims = true;
  bool select_last = false;
  DType index_type = DType::i64;
  bool operator==(const ArgExtreme&) const = default;
};

/// Inputs: x, k. Outputs: values, indices.
struct TopK {
  std::int64_t axis = -1;
  bool largest = true;
  bool sorted = true;
  bool operator==(const TopK&) const = default;
};

// --- Constants and shapes
// -----------------------------------------------------------------------------------

/// No input; the output tensor holds the data.
struct Constant {
  bool operator==(const Constant&) const = default;
};

/// Input: shape. Fills with one value.
struct ConstantOfShape {
  DType dtype = DType::f32;
  double value = 0;
  bool operator==(const ConstantOfShape&) const = default;
};

/// The extents [start, end) of the input. ONNX gives them as int64, TFLite also as int32.
struct ShapeOf {
  std::int64_t start = 0;
  std::optional<std::int64_t> end;
  DType index_type = DType::i64;
  bool operator==(const ShapeOf&) const = default;
};

/// Inputs: start, limit, delta.
struct Range {
  bool operator==(const Range&) const = default;
};

struct Identity {
  bool operator==(const Identity&) const = default;
};

/// Does nothing at inference.
struct Dropout {
  bool operator==(const Dropout&) const = default;
};

/// An attribute of an operator that is not known.
using Attribute = std::variant<std::int64_t, double, std::string, Ints, std::vector<double>,
                               std::vector<std::string>>;

/// An operator that is kept as it stands in the file, but that nothing here can run or price.
struct Unknown {
  std::string domain;  ///< "" for the standard operators of the format
  std::string type;
  std::map<std::string, Attribute> attributes;
  std::string reason;  ///< why it is not understood, e.g. "no such operator is known"
  bool operator==(const Unknown&) const = default;
};

using AnyOperator =
    std::variant<Unknown, Conv, ConvTranspose, Gemm, MatMul, MultiHeadAttention, BatchNorm,
                 InstanceNorm, LayerNorm, PRelu, Pool, GlobalPool, Lrn, LpNormalization, Softmax,
                 Activate, Unary, Elementwise, Where, Cast, QuantizeLinear, DequantizeLinear,
                 Requantize, Concat, Split, Slice, Pad, Resize, Transpose, Reshape, Flatten,
                 Squeeze, Unsqueeze, Expand, Tile, Gather, Stack, Unstack, DepthToSpace,
                 SpaceToDepth, SpaceToBatch, BatchToSpace, ChannelShuffle, Reduce, ArgExtreme, TopK,
                 Constant, ConstantOfShape, ShapeOf, Range, Identity, Dropout>;

template <class Op, class... Ops>
constexpr bool is_among(const std::variant<Ops...>*) {
  return (std::is_same_v<Op, Ops> || ...);
}

/// One of them, to be looked at as a std::variant. Copies, moves and comparisons are compiled once,
/// not in each file that has a Node: that takes two seconds off each.
class Operator : public AnyOperator {
 public:
  Operator();
  Operator(const Operator& other);
  Operator(Operator&& other) noexcept;
  template <class Op>
    requires(is_among<Op>(static_cast<const AnyOperator*>(nullptr)))
  Operator(Op op) : AnyOperator(std::in_place_type<Op>, std::move(op)) {}
  ~Operator();
  Operator& operator=(const Operator& other);
  Operator& operator=(Operator&& other) noexcept;

  bool operator==(const Operator& other) const;
};

/// The operator's type as shown to users: ONNX's name where it has one ("Conv", "Relu",
/// "ReduceMean"), the file's own for an unknown one.
std::string_view type_name(const Operator& op);

/// The name of an activation: "Relu", "Clip", "Silu", …; "" for none.
std::string_view type_name(ActivationKind kind);

/// Builds a visitor out of lambdas: std::visit(Overloaded{[](const Conv&) {…}, [](const auto&)
/// {…}}, op).
template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace fleetfit::graph
