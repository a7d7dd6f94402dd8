#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "graph/tflite/copy_budget.h"
#include "tflite_generated.h"

namespace fleetfit::graph::tflite {

/// What the reading of one operator leaves for those after it.
struct Progress {
  Graph& graph;
  CopyBudget& budget;
  std::vector<int> readers;  ///< of each tensor of the file, being an output counted as one
  std::map<TensorId, TensorId> depthwise_weights;  ///< those transposed, by the file's id
  std::map<TensorId, std::size_t> made_by;         ///< index of the node that makes a tensor
};

/// One operator of the file on its way into the graph. Indices of its tensors are checked.
struct Conversion {
  Progress& progress;
  Graph& graph;
  const file::Operator& source;
  std::string name;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;

  /// kNoTensor if it is left out.
  TensorId input(std::size_t i) const { return i < inputs.size() ? inputs[i] : kNoTensor; }

  /// The shape of an input as far as the file tells it; null if not.
  const Shape* shape(std::size_t i) const;

  /// The values of an input that is a short list of constant whole numbers, e.g. axes.
  std::optional<Ints> ints(std::size_t i) const;

  /// The same for a single number, e.g. an axis.
  std::optional<std::int64_t> integer(std::size_t i) const;

  /// Null if the file holds no options, or those of another operator.
  template <class T>
  const T* options() const {
    return source.builtin_options_as<T>();
  }

  /// A constant that this operator reads.
  TensorId add_ints(std::string_view role, const Ints& values);

  /// A node that this operator needs before it; gives its output. `like` describes that.
  TensorId add_before(Operator op, std::vector<TensorId> op_inputs, std::string_view role,
                      Tensor like);
};

/// What an operator becomes: Unknown, with nothing but a reason, where a graph has no such thing.
struct Converted {
  Operator op;
  std::vector<TensorId> inputs;
  Activation activation;
};

/// How to convert one operator. Fails with `invalid_input` if it contradicts itself.
using Converter = Result<Converted> (*)(Conversion&);

inline Converted not_known(std::string reason) {
  return {.op = Unknown{.reason = std::move(reason)}};
}

/// The activation that the file fuses into an operator; nothing if it is one that a graph has not.
std::optional<Activation> fused(file::ActivationFunctionType type);

/// The same from an operator's options, which may be null.
template <class T>
std::optional<Activation> fused(const T* options) {
  return options == nullptr ? Activation{} : fused(options->fused_activation_function());
}

inline constexpr std::string_view kUnknownActivation = "its fused activation is not known";

/// The weights of a depthwise convolution, 1 x height x width x output in the file, as output x
/// height x width x 1. Transposes constants, also below a conversion to float, and otherwise puts a
/// Transpose before the operator.
Result<TensorId> depthwise_weights(Conversion& conversion, TensorId weights);

// One function for each operator or family of them.

Result<Converted> convert_conv_2d(Conversion& c);
Result<Converted> convert_depthwise_conv_2d(Conversion& c);
Result<Converted> convert_transpose_conv(Conversion& c);
Result<Converted> convert_mediapipe_transpose_conv(Conversion& c);
Result<Converted> convert_fully_connected(Conversion& c);
Result<Converted> convert_batch_matmul(Conversion& c);
Result<Converted> convert_average_pool_2d(Conversion& c);
Result<Converted> convert_max_pool_2d(Conversion& c);
Result<Converted> convert_softmax(Conversion& c);
Result<Converted> convert_log_softmax(Conversion& c);
Result<Converted> convert_l2_normalization(Conversion& c);
Result<Converted> convert_local_response_normalization(Conversion& c);

Result<Converted> convert_leaky_relu(Conversion& c);
Result<Converted> convert_gelu(Conversion& c);
Result<Converted> convert_prelu(Conversion& c);
Result<Converted> convert_add(Conversion& c);
Result<Converted> convert_sub(Conversion& c);
Result<Converted> convert_mul(Conversion& c);
Result<Converted> convert_div(Conversion& c);
Result<Converted> convert_not_equal(Conversion& c);
Result<Converted> convert_floor_div(Conversion& c);
Result<Converted> convert_floor_mod(Conversion& c);
Result<Converted> convert_select(Conversion& c);
Result<Converted> convert_select_v2(Conversion& c);
Result<Converted> convert_cast(Conversion& c);
Result<Converted> convert_quantize(Conversion& c);
Result<Converted> convert_dequantize(Conversion& c);
Result<Converted> convert_arg_max(Conversion& c);
Result<Converted> convert_arg_min(Conversion& c);
Result<Converted> convert_topk_v2(Conversion& c);
Result<Converted> convert_shape(Conversion& c);
Result<Converted> convert_range(Conversion& c);
Result<Converted> convert_fill(Conversion& c);

Result<Converted> convert_concatenation(Conversion& c);
Result<Converted> convert_split(Conversion& c);
Result<Converted> convert_split_v(Conversion& c);
Result<Converted> convert_slice(Conversion& c);
Result<Converted> convert_strided_slice(Conversion& c);
Result<Converted> convert_pad(Conversion& c);
Result<Converted> convert_mirror_pad(Conversion& c);
Result<Converted> convert_resize_bilinear(Conversion& c);
Result<Converted> convert_resize_nearest_neighbor(Conversion& c);
Result<Converted> convert_reshape(Conversion& c);
Result<Converted> convert_squeeze(Conversion& c);
Result<Converted> convert_expand_dims(Conversion& c);
Result<Converted> convert_transpose(Conversion& c);
Result<Converted> convert_tile(Conversion& c);
Result<Converted> convert_broadcast_to(Conversion& c);
Result<Converted> convert_gather(Conversion& c);
Result<Converted> convert_pack(Conversion& c);
Result<Converted> convert_unpack(Conversion& c);
Result<Converted> convert_space_to_depth(Conversion& c);
Result<Converted> convert_depth_to_space(Conversion& c);
Result<Converted> convert_space_to_batch_nd(Conversion& c);
Result<Converted> convert_batch_to_space_nd(Conversion& c);

/// An operator without options that takes its inputs as they are.
template <UnaryKind kind>
Result<Converted> convert_unary(Conversion& c) {
  return Converted{.op = Unary{kind}, .inputs = c.inputs};
}

template <ElementwiseKind kind>
Result<Converted> convert_elementwise(Conversion& c) {
  return Converted{.op = Elementwise{kind}, .inputs = c.inputs};
}

template <Activation activation>
Result<Converted> convert_activation(Conversion& c) {
  return Converted{.op = Activate{activation}, .inputs = c.inputs};
}

template <ReduceKind kind>
Result<Converted> convert_reduce(Conversion& c) {
  const auto axes = c.ints(1);
  if (!axes) return not_known("its axes are not constant");
  if (axes->empty()) return not_known("it reduces over no axis");
  const auto* options = c.options<file::ReducerOptions>();
  const bool keep_dims = options != nullptr && options->keep_dims();
  return Converted{.op = Reduce{kind, *axes, keep_dims}, .inputs = {c.input(0)}};
}

}  // namespace fleetfit::graph::tflite
