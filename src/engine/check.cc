#include "engine/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

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

Status check_tensor(const Graph& graph, const Node& node, graph::TensorId id) {
  if (id == graph::kNoTensor) return {};
  const Tensor& tensor = graph.tensor(id);
  if (const std::string why = why_not_storable(tensor); !why.empty()) {
    return fail(ErrorCode::unsupported,
                fmt::format("{}: tensor '{}' {}", describe(node), tensor.name, why));
  }
  return {};
}

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
    if (!tensor.data || tensor.dtype != DType::f32) continue;
    const auto values = tensor.data->as<float>();
    // A sum of zeros times the values is zero unless one of them is no number.
    float sum = 0;
    for (const float value : values) sum += value * 0.0F;
    if (sum == 0.0F) continue;
    const auto bad = std::ranges::find_if(values, [](float value) { return std::isnan(value); });
    if (bad != values.end()) {
      return fail(ErrorCode::invalid_input, fmt::format("weight '{}' is not a number at element {}",
                                                        tensor.name, bad - values.begin()));
    }
  }
  return {};
}

}  // namespace

Status check_runnable(const Graph& graph) {
  if (auto status = validate(graph); !status) return status;
  std::vector<std::string> unsupported;
  for (const Node& node : graph.nodes) {
    if (const std::string why = why_not_runnable(graph, node); !why.empty()) {
      unsupported.push_back(describe(node) + ": " + why);
    }
  }
  if (!unsupported.empty()) {
    return fail(ErrorCode::unsupported,
                fmt::format("{} operators cannot be run: {}", unsupported.size(),
                            fmt::join(unsupported, "; ")));
  }
  if (auto status = check_inputs(graph); !status) return status;
  return check_weights(graph);
}

std::string why_not_runnable(const Graph& graph, const Node& node) {
  if (const auto* unknown = std::get_if<graph::Unknown>(&node.op)) return unknown->reason;
  for (const auto id : node.outputs) {
    if (auto status = check_tensor(graph, node, id); !status) return status.error().message;
  }
  return "";
}

}  // namespace fleetfit::engine
