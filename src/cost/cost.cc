#include "fleetfit/cost/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

Count product(std::initializer_list<std::int64_t> factors) {
  Count count(1);
  for (const auto factor : factors) count *= factor;
  return count;
}

/// Shapes of a node's operands; all of them are known.
struct Shapes {
  const Graph& graph;
  const Node& node;

  const Shape& in(std::size_t i) const { return *graph.tensor(node.inputs[i]).shape; }
  const Shape& out(std::size_t i) const { return *graph.tensor(node.outputs[i]).shape; }
  bool has(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] != kNoTensor; }
};

struct MultiplyAccumulates {
  const Shapes& shapes;

  /// Each output element sums over one filter.
  Count operator()(const Conv&) const {
    const auto& weights = shapes.in(1);
    Count count(elements(shapes.out(0)));
    if (weights.front() > 0) count *= elements(weights) / weights.front();
    return count;
  }
  /// Each input element is spread by one filter.
  Count operator()(const ConvTranspose& op) const {
    const auto& x = shapes.in(0);
    const auto& weights = shapes.in(1);
    const auto channels = x[channel_axis(x, op.layout)];
    Count count(elements(x));
    if (channels > 0) count *= elements(weights) / channels;
    return count;
  }
  Count operator()(const Gemm& op) const {
    const auto& b = shapes.in(1);
    return product({elements(shapes.out(0)), op.trans_b ? b[1] : b[0]});
  }
  Count operator()(const MatMul& op) const {
    const auto& a = shapes.in(0);
    const auto depth = op.trans_a && a.size() > 1 ? a[a.size() - 2] : a.back();
    return product({elements(shapes.out(0)), depth});
  }
  Count operator()(const MultiHeadAttention&) const {
    Count count;
    for (std::size_t i = 0; i < 3; ++i)
      count += product({elements(shapes.in(i)), shapes.in(3 + 2 * i).front()});
    const auto& q = shapes.in(0);
    const auto queries = q[q.size() - 2];
    const auto keys = shapes.in(1)[q.size() - 2];
    const auto batch = q.size() == 3 ? q[0] : 1;
    count += product({batch, queries, keys, shapes.in(3).front()});
    count += product({batch, queries, keys, shapes.in(7).front()});
    count += product({elements(shapes.out(0)), shapes.in(9).back()});
    return count;
  }
  template <class Op>
  Count operator()(const Op&) const {
    return 0;
  }
};

/// The inputs that hold trained weights, if they are constant.
struct TrainedInputs {
  const Node& node;

  std::vector<std::size_t> operator()(const Conv&) const { return {1, 2}; }
  std::vector<std::size_t> operator()(const ConvTranspose&) const { return {1, 2}; }
  std::vector<std::size_t> operator()(const Gemm&) const { return {0, 1, 2}; }
  std::vector<std::size_t> operator()(const MatMul&) const { return {0, 1}; }
  std::vector<std::size_t> operator()(const MultiHeadAttention&) const {
    return {3, 4, 5, 6, 7, 8, 9, 10};
  }
  std::vector<std::size_t> operator()(const BatchNorm&) const { return {1, 2}; }
  std::vector<std::size_t> operator()(const InstanceNorm&) const { return {1, 2}; }
  std::vector<std::size_t> operator()(const LayerNorm&) const { return {1, 2}; }
  std::vector<std::size_t> operator()(const PRelu&) const { return {1}; }
  std::vector<std::size_t> operator()(const Gather&) const { return {0}; }
  std::vector<std::size_t> operator()(const Expand&) const { return {0}; }
  std::vector<std::size_t> operator()(const Elementwise&) const { return all(); }
  std::vector<std::size_t> operator()(const Concat&) const { return all(); }
  template <class Op>
  std::vector<std::size_t> operator()(const Op&) const {
    return {};
  }

 private:
  std::vector<std::size_t> all() const {
    std::vector<std::size_t> positions(node.inputs.size());
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = i;
    return positions;
  }
};

/// Factors and bounds written into element-wise operators are single numbers or whole ones; nobody
/// trains those.
bool looks_trained(const Node& node, const Tensor& tensor) {
  const bool free_form =
      std::holds_alternative<Elementwise>(node.op) || std::holds_alternative<Concat>(node.op) ||
      std::holds_alternative<Gather>(node.op) || std::holds_alternative<Expand>(node.op);
  const bool real = is_float(tensor.dtype) || tensor.quantization.has_value();
  return !free_form || (real && elements(*tensor.shape) > 1);
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
std::set<TensorId> trained_operands(const Graph& graph, const Node& node,
                                    const std::vector<bool>& is_static) {
  std::set<TensorId> trained;
  for (const auto i : std::visit(TrainedInputs{node}, node.op)) {
    if (i >= node.inputs.size() || node.inputs[i] == kNoTensor) continue;
    const auto id = node.inputs[i];
    const auto& tensor = graph.tensor(id);
    if (is_static[static_cast<std::size_t>(id)] && tensor.shape && looks_trained(node, tensor))
      trained.insert(id);
  }
  return trained;
}

/// Sums up a graph; weights that were seen are remembered for the total.
class Counter {
 public:
  explicit Counter(const Graph& graph) : graph_(graph), is_static_(static_tensors(graph)) {}

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
  bool is_static(TensorId id) const { return is_static_[static_cast<std::size_t>(id)]; }

  Result<std::optional<NodeCost>> count(const Node& node) {
    if (std::holds_alternative<Unknown>(node.op) || !all_shapes_known(graph_, node))
      return std::optional<NodeCost>();
    NodeCost cost;
    if (std::all_of(node.outputs.begin(), node.outputs.end(),
                    [&](TensorId id) { return id == kNoTensor || is_static(id); })) {
      return std::optional(cost);
    }
    auto flops = std::visit(MultiplyAccumulates{Shapes{graph_, node}}, node.op);
    flops *= 2;
    if (!flops.value())
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
      (is_static(id) ? cost.weight_bytes : cost.input_bytes) += bytes;
      if (is_static(id) && weighed_.insert(id).second) weights_ += bytes;
    }
    for (const auto id : node.outputs) {
      if (id != kNoTensor) cost.output_bytes += bytes_of(graph_.tensor(id));
    }
    inputs_ += cost.input_bytes;
    outputs_ += cost.output_bytes;
  }

  void count_params(const Node& node, NodeCost& cost) {
    for (const auto id : trained_operands(graph_, node, is_static_)) {
      const auto count = elements(*graph_.tensor(id).shape);
      cost.params += count;
      if (trained_.insert(id).second) params_ += count;
    }
  }

  const Graph& graph_;
  std::vector<bool> is_static_;
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
  const auto is_static = static_tensors(graph);
  std::set<TensorId> wanted;
  // Backwards, so that what a weight is computed from is found behind it.
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool computes_weight =
        std::ranges::any_of(node->outputs, [&](TensorId id) { return wanted.contains(id); });
    const bool computes_constant = std::ranges::all_of(node->outputs, [&](TensorId id) {
      return id == kNoTensor || is_static[static_cast<std::size_t>(id)];
    });
    if (computes_weight) wanted.insert(node->inputs.begin(), node->inputs.end());
    if (!computes_constant) wanted.merge(trained_operands(graph, *node, is_static));
  }
  std::erase_if(wanted, [&](TensorId id) {
    if (id == kNoTensor) return true;
    const auto& tensor = graph.tensor(id);
    return !tensor.data || !is_float(tensor.dtype) || tensor.quantization.has_value();
  });
  return {wanted.begin(), wanted.end()};
}

}  // namespace fleetfit::cost
