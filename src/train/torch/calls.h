#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "fleetfit/graph/operator_table.h"
#include "train/torch/operators.h"

/// What the functions that compute operators share.
namespace fleetfit::train::operators {

using Outputs = std::vector<at::Tensor>;
using Call = OperatorCall;
using graph::Ints;
using graph::Layout;

/// Ends the run: operands that a node cannot take.
template <class... Args>
[[noreturn]] void misfit(fmt::format_string<Args...> text, Args&&... args) {
  throw std::runtime_error(fmt::format(text, std::forward<Args>(args)...));
}

/// `count` numbers from `first` on.
Ints counting(std::int64_t count, std::int64_t first = 0);
/// Whole numbers as torch holds them, and back.
Ints ints_of(const at::Tensor& numbers);
at::Tensor tensor_of(const Ints& numbers);
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
