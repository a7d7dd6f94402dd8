#include "elastic/prepare.h"

#include <algorithm>
#include <map>

#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::elastic {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::Node;
using graph::TensorId;

bool can_fold(const Graph& graph, const Node& node) {
  if (std::holds_alternative<graph::Unknown>(node.op) ||
      std::holds_alternative<graph::DequantizeLinear>(node.op) ||
      std::holds_alternative<graph::Requantize>(node.op) || node.inputs.empty())
    return false;
  return std::ranges::all_of(node.inputs, [&](TensorId id) {
    return id == kNoTensor || (graph.tensor(id).is_constant() && !graph.tensor(id).quantization);
  });
}

bool fold(Graph& graph, const Node& node) {
  if (std::holds_alternative<graph::Constant>(node.op))
    return graph.tensor(node.outputs[0]).is_constant();
  if (!can_fold(graph, node)) return false;
  std::vector<graph::Value> values;
  values.reserve(node.inputs.size());
  std::vector<const graph::Value*> operands;
  for (const auto id : node.inputs) {
    if (id == kNoTensor) {
      operands.push_back(nullptr);
      continue;
    }
    const auto& tensor = graph.tensor(id);
    values.push_back({tensor.dtype, *tensor.shape, *tensor.data, tensor.quantization});
    operands.push_back(&values.back());
  }
  auto results = graph::evaluate(node, operands);
  if (!results || results->size() < node.outputs.size()) return false;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoTensor) continue;
    auto& tensor = graph.tensor(node.outputs[i]);
    tensor.dtype = (*results)[i].dtype;
    tensor.shape = std::move((*results)[i].shape);
    tensor.data = std::move((*results)[i].data);
  }
  return true;
}

/// Unlike the pass of that name it leaves shapes alone, as the batch is not yet known.
void fold_constants(Graph& graph) {
  std::erase_if(graph.nodes, [&](const Node& node) { return fold(graph, node); });
}

/// Unlike the pass of that name it knows only operators that do nothing whatever the batch is.
void remove_identities(Graph& graph) {
  std::map<TensorId, TensorId> same;
  std::erase_if(graph.nodes, [&](Node& node) {
    for (auto& id : node.inputs) {
      if (const auto found = same.find(id); found != same.end()) id = found->second;
    }
    const bool does_nothing = std::holds_alternative<graph::Identity>(node.op) ||
                              std::holds_alternative<graph::Dropout>(node.op);
    const bool is_output = std::ranges::find(graph.outputs, node.outputs[0]) != graph.outputs.end();
    if (!does_nothing || is_output || node.activation || node.outputs.size() > 1) return false;
    same[node.outputs[0]] = node.inputs[0];
    return true;
  });
}

/// Lets a concatenation read an earlier one of which it repeats the first inputs. Dense networks
/// then hand on one tensor from layer to layer.
void nest_concats(Graph& graph) {
  struct Seen {
    std::int64_t axis;
    std::vector<TensorId> parts;
    TensorId whole;
  };
  std::vector<Seen> seen;
  for (auto& node : graph.nodes) {
    const auto* concat = std::get_if<graph::Concat>(&node.op);
    if (concat == nullptr) continue;
    const auto parts = node.inputs;
    const Seen* longest = nullptr;
    for (const auto& earlier : seen) {
      const bool begins = earlier.axis == concat->axis && earlier.parts.size() < parts.size() &&
                          std::equal(earlier.parts.begin(), earlier.parts.end(), parts.begin());
      if (begins && (longest == nullptr || earlier.parts.size() > longest->parts.size()))
        longest = &earlier;
    }
    if (longest != nullptr) {
      node.inputs.assign(1, longest->whole);
      node.inputs.insert(node.inputs.end(),
                         parts.begin() + static_cast<std::ptrdiff_t>(longest->parts.size()),
                         parts.end());
    }
    if (!node.activation) seen.push_back({concat->axis, parts, node.outputs[0]});
  }
}

}  // namespace

Result<Graph> prepared(const Graph& model) {
  Graph graph = model;
  FLEETFIT_TRY(graph::validate(graph));
  fold_constants(graph);
  remove_identities(graph);
  for (const auto* pass : {"recognize_activations", "recognize_layer_norm"}) {
    FLEETFIT_TRY(graph::run_pass(graph, pass));
  }
  nest_concats(graph);
  FLEETFIT_TRY(graph::run_pass(graph, "remove_dead_nodes"));
  FLEETFIT_TRY(graph::infer_shapes(graph));
  return graph;
}

}  // namespace fleetfit::elastic
