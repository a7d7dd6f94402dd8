#include "fleetfit/cost/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fleetfit/graph/links.h"
#include "fleetfit/graph/operator_facts.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::cost {
namespace {

using namespace graph;  // the operators, which this file is all about

/// A count that remembers that it overflowed.
class Count {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): it is a number
  Count(std::int64_t value = 0) : value_(value) {}

  Count& operator*=(std::int64_t factor) {
    overflowed_ = __builtin_mul_overflow(value_, factor, &value_) || overflowed_;
    return *this;
  }
  Count& operator+=(const Count& other) {
    overflowed_ =
        __builtin_add_overflow(value_, other.value_, &value_) || overflowed_ || other.overflowed_;
    return *this;
  }
  std::optional<std::int64_t> value() const {
    return overflowed_ ? std::nullopt : std::optional(value_);
  }

 private:
  std::int64_t value_;
  bool overflowed_ = false;
};

/// Factors and bounds written into element-wise operators are single numbers or whole ones; nobody
/// trains those.
bool looks_trained(const Node& node, const Tensor& tensor) {
  const bool real = is_float(tensor.dtype) || tensor.quantization.has_value();
  return !takes_any_factor(node.op) || (real && elements(*tensor.shape) > 1);
}

std::int64_t bytes_of(const Tensor& tensor) {
  return elements(*tensor.shape) * static_cast<std::int64_t>(size_of(tensor.dtype));
}

bool all_shapes_known(const Graph& graph, const Node& node) {
  const auto known = [&](TensorId id) {
    return id == kNoTensor || graph.tensor(id).shape.has_value();
  };
  return std::all_of(node.inputs.begin(), node.inputs.end(), known) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), known);
}

/// Those operands of a node that are trained; each once.
std::set<TensorId> trained_operands(const Links& links, const Node& node) {
  std::set<TensorId> trained;
  for (const auto i : trained_inputs(node)) {
    const auto id = node.inputs[i];
    if (links.is_static(id) && links.tensor(id).shape && looks_trained(node, links.tensor(id)))
      trained.insert(id);
  }
  return trained;
}

/// Sums up a graph; weights that were seen are remembered for the total.
class Counter {
 public:
  explicit Counter(const Graph& graph) : graph_(graph), links_(graph) {}

  Result<GraphCost> run() {
    for (const auto& node : graph_.nodes) {
      FLEETFIT_ASSIGN(auto cost, count(node));
      result_.nodes.push_back(cost);
    }
    const auto flops = flops_.value();
    const auto params = params_.value();
    const auto inputs = inputs_.value();
    const auto outputs = outputs_.value();
    const auto weights = weights_.value();
    if (!flops || !params || !inputs || !outputs || !weights) {
      return fail(ErrorCode::invalid_input,
                  "the network is absurdly large: its cost does not fit into 64 bits");
    }
    result_.total = {*flops, *params, *inputs, *outputs, *weights};
    return std::move(result_);
  }

 private:
  Result<std::optional<NodeCost>> count(const Node& node) {
    if (std::holds_alternative<Unknown>(node.op) || !all_shapes_known(graph_, node))
      return std::optional<NodeCost>();
    NodeCost cost;
    if (links_.is_static(node)) return std::optional(cost);
    const auto products = multiply_accumulates(graph_, node);
    Count flops(products.value_or(0));
    flops *= 2;
    if (!products || !flops.value())
      return fail(
          ErrorCode::invalid_input,
          fmt::format("{} is absurdly large: its cost does not fit into 64 bits", describe(node)));
    cost.flops = *flops.value();
    flops_ += flops;
    count_bytes(node, cost);
    count_params(node, cost);
    return std::optional(cost);
  }

  void count_bytes(const Node& node, NodeCost& cost) {
    for (const auto id : std::set<TensorId>(node.inputs.begin(), node.inputs.end())) {
      if (id == kNoTensor) continue;
      const auto bytes = bytes_of(graph_.tensor(id));
      (links_.is_static(id) ? cost.weight_bytes : cost.input_bytes) += bytes;
      if (links_.is_static(id) && weighed_.insert(id).second) weights_ += bytes;
    }
    for (const auto id : node.outputs) {
      if (id != kNoTensor) cost.output_bytes += bytes_of(graph_.tensor(id));
    }
    inputs_ += cost.input_bytes;
    outputs_ += cost.output_bytes;
  }

  void count_params(const Node& node, NodeCost& cost) {
    for (const auto id : trained_operands(links_, node)) {
      const auto count = elements(*graph_.tensor(id).shape);
      cost.params += count;
      if (trained_.insert(id).second) params_ += count;
    }
  }

  const Graph& graph_;
  Links links_;
  std::set<TensorId> weighed_;
  std::set<TensorId> trained_;
  Count flops_;
  Count params_;
  Count inputs_;
  Count outputs_;
  Count weights_;
  GraphCost result_;
};

}  // namespace

Result<GraphCost> count_cost(const Graph& graph) { return Counter(graph).run(); }

std::vector<TensorId> trained_constants(const Graph& graph) {
  const Links links(graph);
  std::set<TensorId> wanted;
  // Backwards, so that what a weight is computed from is found behind it.
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool computes_weight =
        std::ranges::any_of(node->outputs, [&](TensorId id) { return wanted.contains(id); });
    if (computes_weight) wanted.insert(node->inputs.begin(), node->inputs.end());
    if (!links.is_static(*node)) wanted.merge(trained_operands(links, *node));
  }
  std::erase_if(wanted, [&](TensorId id) {
    if (id == kNoTensor) return true;
    const auto& tensor = graph.tensor(id);
    return !tensor.data || !is_float(tensor.dtype) || tensor.quantization.has_value();
  });
  return {wanted.begin(), wanted.end()};
}

}  // namespace fleetfit::cost
