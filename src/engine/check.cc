#include "engine/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "fleetfit/engine/program.h"

namespace fleetfit::engine {
namespace {

using graph::DType;
using graph::Graph;
using graph::Node;
using graph::Tensor;

std::string why_not_storable(const Tensor& tensor) {
  if (tensor.dtype == DType::unknown) return "has no known type";
  if (tensor.dtype == DType::text) return "holds text";
  if (!tensor.shape) return "has no shape that is known before it runs";
  return "";
}

template <class T>
std::optional<std::ptrdiff_t> first_nan(std::span<const T> values) {
  // A sum of zeros times the values is zero unless one of them is no finite number.
  T sum = 0;
  for (const T value : values) sum += value * T{0};
  if (sum == T{0}) return std::nullopt;
  const auto found = std::ranges::find_if(values, [](T value) { return std::isnan(value); });
  if (found == values.end()) return std::nullopt;
  return found - values.begin();
}

/// The first element that has every bit of the exponent set and some bit of the mantissa.
std::optional<std::ptrdiff_t> first_nan_of_16_bits(std::span<const std::uint16_t> values,
                                                   std::uint16_t infinity) {
  constexpr std::uint16_t kWithoutSign = 0x7FFF;
  const auto found = std::ranges::find_if(
      values, [&](std::uint16_t bits) { return (bits & kWithoutSign) > infinity; });
  if (found == values.end()) return std::nullopt;
  return found - values.begin();
}

std::optional<std::ptrdiff_t> first_nan(const Tensor& tensor) {
  constexpr std::uint16_t kInfinityOfHalf = 0x7C00;
  constexpr std::uint16_t kInfinityOfBrainFloat = 0x7F80;
  if (tensor.dtype == DType::f32) return first_nan(tensor.data->as<float>());
  if (tensor.dtype == DType::f64) return first_nan(tensor.data->as<double>());
  if (tensor.dtype == DType::f16)
    return first_nan_of_16_bits(tensor.data->as<std::uint16_t>(), kInfinityOfHalf);
  if (tensor.dtype == DType::bf16)
    return first_nan_of_16_bits(tensor.data->as<std::uint16_t>(), kInfinityOfBrainFloat);
  return std::nullopt;
}

bool is_untold(const Graph& graph, graph::TensorId id) {
  return id != graph::kNoTensor && !why_not_storable(graph.tensor(id)).empty();
}

}  // namespace

Status check_inputs(const Graph& graph) {
  for (const auto id : graph.inputs) {
    const Tensor& tensor = graph.tensor(id);
    if (const std::string why = why_not_storable(tensor); !why.empty()) {
      return fail(ErrorCode::invalid_input, fmt::format("input '{}' {}", tensor.name, why));
    }
    if (graph::elements(*tensor.shape) == 0) {
      return fail(ErrorCode::invalid_input, fmt::format("input '{}' is empty: {}", tensor.name,
                                                        graph::to_string(*tensor.shape)));
    }
  }
  return {};
}

Status check_weights(const Graph& graph) {
  for (const Tensor& tensor : graph.tensors) {
    if (!tensor.data) continue;
    if (const auto place = first_nan(tensor)) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("weight '{}' is not a number at element {}", tensor.name, *place));
    }
  }
  return {};
}

Status check_operators(const Graph& graph) {
  std::vector<std::string> unsupported;
  for (const Node& node : graph.nodes) {
    // What follows from another node's fault is not listed again.
    const bool follows =
        std::ranges::any_of(node.inputs, [&](graph::TensorId id) { return is_untold(graph, id); });
    const std::string why = why_not_runnable(graph, node);
    if (why.empty() || (follows && !std::holds_alternative<graph::Unknown>(node.op))) continue;
    unsupported.push_back(describe(node) + ": " + why);
  }
  if (unsupported.empty()) return {};
  return fail(ErrorCode::unsupported,
              fmt::format("{} {} cannot be run: {}", unsupported.size(),
                          unsupported.size() == 1 ? "operator" : "operators",
                          fmt::join(unsupported, "; ")));
}

std::string why_not_runnable(const Graph& graph, const Node& node) {
  if (const auto* unknown = std::get_if<graph::Unknown>(&node.op)) return unknown->reason;
  for (const auto id : node.outputs) {
    if (!is_untold(graph, id)) continue;
    const Tensor& tensor = graph.tensor(id);
    return fmt::format("tensor '{}' {}", tensor.name, why_not_storable(tensor));
  }
  return "";
}

}  // namespace fleetfit::engine
