#pragma once

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fleetfit/core/counting.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/graph/operator_table.h"
#include "train/torch/parameters.h"

/// What each operator of a graph computes, in terms of torch, so that gradients flow through it.
namespace fleetfit::train {

/// How batch norm works.
struct NormMode {
  bool batch_statistics = false;
  double momentum = 0.1;
};

/// How Dropout works: it leaves out a share of the elements, chosen by the seed and the node.
struct DropMode {
  double share = 0;  ///< 0: none
  std::uint64_t seed = 0;
};

/// A node at work. Floats are float32 on the network's device, whole numbers int64 on the CPU.
struct OperatorCall {
  const graph::Graph& graph;
  const graph::Node& node;
  const std::vector<bool>& is_static;  ///< of each tensor of the graph
  std::vector<at::Tensor> inputs;      ///< undefined where left out
  std::int64_t graph_batch = 1;        ///< the extent that stands for the batch in the graph
  std::int64_t batch = 1;              ///< what it is in this run
  NormMode norm;
  DropMode drop;
  /// The first operand was made by a layer that does not look at it again, and nobody else will:
  /// its memory may be used for the result.
  bool may_overwrite = false;

  const at::Tensor& in(std::size_t i) const { return inputs[i]; }
  at::Tensor optional(std::size_t i) const { return i < inputs.size() ? inputs[i] : at::Tensor(); }
  bool has(std::size_t i) const { return i < inputs.size() && inputs[i].defined(); }
  bool is_static_input(std::size_t i) const {
    return is_static[static_cast<std::size_t>(node.inputs[i])];
  }
};

/// Runs the node, its fused activation included. Throws what torch throws.
std::vector<at::Tensor> run_operator(const OperatorCall& call);

/// Whether gradients through the operator do not need its results, and these are its own.
bool forgets_results(const graph::Operator& op);

/// Why the operator cannot be run; nothing if it can.
std::optional<std::string> why_not_trainable(const graph::Operator& op);

/// The element type in which torch holds values of a graph; nothing for one that it does not.
std::optional<at::ScalarType> scalar_type_of(graph::DType type);

}  // namespace fleetfit::train

/// What the functions that compute operators share.
namespace fleetfit::train::operators {

using Outputs = std::vector<at::Tensor>;
using Call = OperatorCall;
using core::counting;
using graph::Ints;
using graph::Layout;

/// Ends the run: operands that a node cannot take.
template <class... Args>
[[noreturn]] void misfit(fmt::format_string<Args...> text, Args&&... args) {
  throw std::runtime_error(fmt::format(text, std::forward<Args>(args)...));
}

/// Whole numbers as torch holds them, and back.
Ints ints_of(const at::Tensor& numbers);
using train::tensor_of;
/// Axes counted from the end become those counted from the beginning.
std::int64_t positive_axis(std::int64_t axis, std::int64_t rank);
Ints positive_axes(Ints axes, std::int64_t rank);
/// Between the layout of the graph and torch's own.
at::Tensor to_channels_first(const at::Tensor& x, Layout layout);
at::Tensor from_channels_first(const at::Tensor& x, Layout layout);
/// The extents behind batch and channels.
Ints spatial_of(const at::Tensor& x);
/// Adds to the spatial dimensions; torch wants the last one first.
at::Tensor pad_spatial(const at::Tensor& x, const Ints& begin, const Ints& end, double value);
/// All on the device of the one that is not on the CPU, if there is one.
std::vector<at::Tensor> together(std::vector<at::Tensor> operands);

enum class Memory : std::uint8_t { keep, overwrite };

/// The function of each element, in the memory of `x` if it may be overwritten.
at::Tensor activated(at::Tensor x, const graph::Activation& activation, Memory memory);

/// What computes operators of one type.
struct Runner {
  std::size_t type = 0;  ///< graph::kTypeOf
  Outputs (*run)(const Call&) = nullptr;
};

template <class Op, Outputs (*run)(const Op&, const Call&)>
constexpr Runner runner() {
  return {graph::kTypeOf<Op>,
          [](const Call& call) { return run(*std::get_if<Op>(&call.node.op), call); }};
}

// What each file can compute.
std::span<const Runner> arithmetic_runners();
std::span<const Runner> layer_runners();
std::span<const Runner> movement_runners();

}  // namespace fleetfit::train::operators
