#include <algorithm>
#include <utility>

#include "graph/passes/all_passes.h"
#include "graph/passes/constants.h"
#include "graph/passes/rewriter.h"

namespace fleetfit::graph::rewrite {
namespace {

// Layer norm as networks write it out:
//   d = x - mean(x);  n = d / sqrt(mean(d^2) + epsilon);  y = n * scale + shift
class LayerNormMatch {
 public:
  LayerNormMatch(const Rewriter& rewriter, const Graph& graph)
      : rewriter_(rewriter), graph_(graph) {}

  TensorId x = kNoTensor;
  Ints axes;
  float epsilon = 0;
  std::vector<int> nodes;  ///< all that take part, the last to run first

  /// Whether `index` computes n.
  bool match(int index) {
    nodes = {index};
    const auto& node = rewriter_.node(index);
    if (const auto division = operands(index, ElementwiseKind::div))
      return match_deviation(division->first) && match_root(division->second);
    if (!operands(index, ElementwiseKind::mul)) return false;
    for (const auto& [d, r] :
         {std::pair(node.inputs[0], node.inputs[1]), std::pair(node.inputs[1], node.inputs[0])}) {
      nodes = {index};
      x = kNoTensor;
      axes.clear();
      if (match_deviation(d) && match_inverse_root(r)) return true;
    }
    return false;
  }

 private:
  // The two inputs of a node if it is that element-wise operator, without activation.
  std::optional<std::pair<TensorId, TensorId>> operands(int index, ElementwiseKind kind) const {
    if (index == kNoNode || rewriter_.node(index).activation) return std::nullopt;
    const auto& node = rewriter_.node(index);
    const auto* op = std::get_if<Elementwise>(&node.op);
    if (op == nullptr || op->kind != kind || node.inputs.size() != 2) return std::nullopt;
    return std::pair(node.inputs[0], node.inputs[1]);
  }

  // The input of the function `kind` that makes `id`, taking the node in.
  TensorId argument(TensorId id, UnaryKind kind) {
    const int index = rewriter_.maker_of<Unary>(id);
    if (index == kNoNode || rewriter_.node(index).activation) return kNoTensor;
    if (std::get<Unary>(rewriter_.node(index).op).kind != kind) return kNoTensor;
    nodes.push_back(index);
    return rewriter_.node(index).inputs.front();
  }

  // The base of a power with this constant exponent.
  TensorId base(TensorId id, double exponent) {
    const int index = rewriter_.maker(id);
    const auto power = operands(index, ElementwiseKind::pow);
    if (!power || single_value(graph_, power->second) != exponent) return kNoTensor;
    nodes.push_back(index);
    return power->first;
  }

  // mean(of) over the axes, which the first mean that is seen decides on.
  bool match_mean(TensorId id, TensorId of) {
    const int index = rewriter_.maker_of<Reduce>(id);
    if (index == kNoNode || rewriter_.node(index).activation) return false;
    const auto& reduce = std::get<Reduce>(rewriter_.node(index).op);
    if (reduce.kind != ReduceKind::mean || !reduce.keep_dims || reduce.axes.empty()) return false;
    if (rewriter_.node(index).inputs.front() != of) return false;
    if (axes.empty()) axes = reduce.axes;
    nodes.push_back(index);
    return axes == reduce.axes;
  }

  // x - mean(x); the first one decides on x.
  bool match_deviation(TensorId id) {
    const int index = rewriter_.maker(id);
    const auto difference = operands(index, ElementwiseKind::sub);
    if (!difference) return false;
    if (x == kNoTensor) x = difference->first;
    nodes.push_back(index);
    return difference->first == x && match_mean(difference->second, x);
  }

  bool match_squared_deviation(TensorId id) {
    const int index = rewriter_.maker(id);
    if (const auto product = operands(index, ElementwiseKind::mul)) {
      nodes.push_back(index);
      return product->first == product->second && match_deviation(product->first);
    }
    if (const auto difference = operands(index, ElementwiseKind::squared_difference)) {
      nodes.push_back(index);
      return difference->first == x && match_mean(difference->second, x);
    }
    if (const auto d = base(id, 2.0); d != kNoTensor) return match_deviation(d);
    const auto d = argument(id, UnaryKind::square);
    return d != kNoTensor && match_deviation(d);
  }

  bool match_variance(TensorId id) {
    const int sum = rewriter_.maker(id);
    const auto parts = operands(sum, ElementwiseKind::add);
    if (!parts) return false;
    nodes.push_back(sum);
    auto [mean, constant] = *parts;
    if (graph_.tensor(mean).is_constant()) std::swap(mean, constant);
    const auto value = single_value(graph_, constant);
    const int reduce = rewriter_.maker_of<Reduce>(mean);
    if (!value || reduce == kNoNode) return false;
    epsilon = static_cast<float>(*value);
    const auto squares = rewriter_.node(reduce).inputs.front();
    return match_mean(mean, squares) && match_squared_deviation(squares);
  }

  bool match_root(TensorId id) {
    if (const auto a = base(id, 0.5); a != kNoTensor) return match_variance(a);
    const auto a = argument(id, UnaryKind::sqrt);
    return a != kNoTensor && match_variance(a);
  }

  bool match_inverse_root(TensorId id) {
    if (const auto a = base(id, -0.5); a != kNoTensor) return match_variance(a);
    if (const auto a = argument(id, UnaryKind::rsqrt); a != kNoTensor) return match_variance(a);
    const auto root = argument(id, UnaryKind::reciprocal);
    return root != kNoTensor && match_root(root);
  }

  const Rewriter& rewriter_;
  const Graph& graph_;
};

// The first of the axes if they are the last dimensions, all of them.
std::optional<std::size_t> first_normalized(const Ints& axes, std::size_t rank) {
  std::vector<bool> reduced(rank, false);
  for (const auto axis : axes)
    reduced[static_cast<std::size_t>(normalized_axis(axis, rank))] = true;
  const auto first = std::find(reduced.begin(), reduced.end(), true);
  if (std::find(first, reduced.end(), false) != reduced.end()) return std::nullopt;
  return static_cast<std::size_t>(first - reduced.begin());
}

// The only reader of `id` if it combines it by `kind` with a constant of this shape.
struct Follower {
  int index = kNoNode;
  TensorId constant = kNoTensor;
};
Follower follower(const Rewriter& rewriter, const Graph& graph, int index, ElementwiseKind kind,
                  const Shape& shape) {
  const auto id = rewriter.node(index).outputs.front();
  if (!rewriter.read_once(id) || rewriter.node(index).activation) return {};
  const int reader = rewriter.readers(id).front();
  const auto& node = rewriter.node(reader);
  const auto* op = std::get_if<Elementwise>(&node.op);
  if (op == nullptr || op->kind != kind || node.inputs.size() != 2) return {};
  const auto constant = node.inputs[node.inputs[0] == id ? 1 : 0];
  const auto& tensor = graph.tensor(constant);
  if (!tensor.is_constant() || !is_plain_float(graph, constant) || tensor.shape != shape) return {};
  return {reader, constant};
}

void recognize(Rewriter& rewriter, int index) {
  auto& graph = rewriter.graph();
  LayerNormMatch match(rewriter, graph);
  if (!match.match(index) || !is_plain_float(graph, match.x) || !graph.tensor(match.x).shape)
    return;
  if (!rewriter.are_private(match.nodes)) return;
  const Shape shape = *graph.tensor(match.x).shape;
  const auto axis = first_normalized(match.axes, shape.size());
  if (!axis) return;
  const Shape inner(shape.begin() + static_cast<std::ptrdiff_t>(*axis), shape.end());

  int last = index;
  const auto scaled = follower(rewriter, graph, last, ElementwiseKind::mul, inner);
  if (scaled.index != kNoNode) last = scaled.index;
  const auto shifted = follower(rewriter, graph, last, ElementwiseKind::add, inner);
  if (shifted.index != kNoNode) last = shifted.index;

  const auto replaced = rewriter.node(last).inputs;
  std::vector<TensorId> inputs{match.x, scaled.constant};
  if (scaled.constant == kNoTensor) {
    const std::vector<float> ones(static_cast<std::size_t>(elements(inner)), 1.0F);
    inputs[1] = add_floats(graph, rewriter.node(last).name + "_scale", inner, ones);
  }
  if (shifted.constant != kNoTensor) inputs.push_back(shifted.constant);
  rewriter.node(last).op = LayerNorm{
      static_cast<std::int64_t>(*axis) - static_cast<std::int64_t>(shape.size()), match.epsilon};
  rewriter.set_inputs(last, std::move(inputs));
  for (const auto id : replaced) rewriter.remove_unread(id);
}

}  // namespace

Result<bool> recognize_layer_norm(Graph& graph) {
  return rewrite_nodes(graph, [](Rewriter& rewriter, int n) {
    if (std::holds_alternative<Elementwise>(rewriter.node(n).op)) recognize(rewriter, n);
  });
}

}  // namespace fleetfit::graph::rewrite
