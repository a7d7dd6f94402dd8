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

void recognize_norm(Rewriter& rewriter, int index) {
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
    inputs[1] = graph.add_floats(rewriter.node(last).name + "_scale", inner, ones);
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
    if (std::holds_alternative<Elementwise>(rewriter.node(n).op)) recognize_norm(rewriter, n);
  });
}

namespace {

std::optional<PoolKind> pool_kind(ReduceKind kind) {
  if (kind == ReduceKind::mean) return PoolKind::average;
  if (kind == ReduceKind::max) return PoolKind::max;
  return std::nullopt;
}

// The layout in which `axes` are all the spatial dimensions of an image.
std::optional<Layout> layout_reduced(const Ints& axes, std::size_t rank) {
  if (rank < 4 || axes.size() != rank - 2) return std::nullopt;
  Ints sorted;
  for (const auto axis : axes) sorted.push_back(normalized_axis(axis, rank));
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i] != sorted[i - 1] + 1) return std::nullopt;
  }
  if (sorted.front() == 2) return Layout::nchw;
  if (sorted.front() == 1) return Layout::nhwc;
  return std::nullopt;
}

}  // namespace

Result<bool> recognize_global_pool(Graph& graph) {
  bool changed = false;
  for (auto& node : graph.nodes) {
    const auto* reduce = std::get_if<Reduce>(&node.op);
    if (reduce == nullptr || !reduce->keep_dims) continue;
    const auto& x = graph.tensor(node.inputs.front());
    const auto kind = pool_kind(reduce->kind);
    if (!kind || !x.shape || !(is_float(x.dtype) || x.quantization)) continue;
    const auto layout = layout_reduced(reduce->axes, x.shape->size());
    if (!layout) continue;
    node.op = GlobalPool{*kind, *layout};
    changed = true;
  }
  return changed;
}

namespace {

// A Transpose that swaps two neighbouring blocks of dimensions: outer x a x b x inner becomes
// outer x b x a x inner.
struct Swap {
  std::int64_t outer = 1;
  std::int64_t a = 1;
  std::int64_t b = 1;
  std::int64_t inner = 1;
};

std::int64_t extent(const Shape& shape, std::int64_t dimension) {
  return shape[static_cast<std::size_t>(dimension)];
}

// Reads the permutation as: dimensions that stay, a block from further back, the block that it
// jumps over, dimensions that stay.
std::optional<Swap> as_swap(const Shape& shape, const Ints& perm) {
  const auto rank = perm.size();
  Swap swap;
  std::size_t i = 0;
  while (i < rank && perm[i] == static_cast<std::int64_t>(i))
    swap.outer *= extent(shape, perm[i++]);
  if (i == rank) return std::nullopt;
  const auto first = static_cast<std::int64_t>(i);
  const auto jumped = perm[i] - first;
  auto expected = perm[i];
  while (i < rank && perm[i] == expected) {
    swap.b *= extent(shape, perm[i++]);
    ++expected;
  }
  for (std::int64_t d = first; d < first + jumped; ++d) {
    if (i == rank || perm[i] != d) return std::nullopt;
    swap.a *= extent(shape, perm[i++]);
  }
  for (; i < rank; ++i) {
    if (perm[i] != static_cast<std::int64_t>(i)) return std::nullopt;
    swap.inner *= extent(shape, perm[i]);
  }
  return swap;
}

std::optional<ChannelShuffle> as_shuffle(const Shape& image, const Swap& swap) {
  if (image.size() < 3 || swap.a == 1 || swap.b == 1) return std::nullopt;
  const auto channels = swap.a * swap.b;
  if (swap.outer == image[0] && channels == image[1]) return ChannelShuffle{swap.a, Layout::nchw};
  if (swap.inner == 1 && channels == image.back()) return ChannelShuffle{swap.a, Layout::nhwc};
  return std::nullopt;
}

void recognize_shuffle(Rewriter& rewriter, int last) {
  const auto& graph = rewriter.graph();
  if (!std::holds_alternative<Reshape>(rewriter.node(last).op)) return;
  const auto swapped = rewriter.node(last).inputs.front();
  const int middle = rewriter.maker_of<Transpose>(swapped);
  if (middle == kNoNode || !rewriter.read_once(swapped)) return;
  const auto split = rewriter.node(middle).inputs.front();
  const int first = rewriter.maker_of<Reshape>(split);
  if (first == kNoNode || !rewriter.read_once(split)) return;
  for (const int n : {first, middle, last}) {
    if (!is_pure_move(graph, rewriter.node(n))) return;
  }
  const auto x = rewriter.node(first).inputs.front();
  if (!same_shape(graph, x, rewriter.node(last).outputs.front())) return;
  const auto& shape = *graph.tensor(split).shape;
  const auto& transpose = std::get<Transpose>(rewriter.node(middle).op);
  const auto swap = as_swap(shape, full_perm(transpose, shape.size()));
  if (!swap) return;
  const auto shuffle = as_shuffle(*graph.tensor(x).shape, *swap);
  if (!shuffle) return;
  rewriter.node(last).op = *shuffle;
  rewriter.set_inputs(last, {x});
  rewriter.remove_unread(swapped);
}

}  // namespace

Result<bool> recognize_channel_shuffle(Graph& graph) {
  return rewrite_nodes(graph, recognize_shuffle);
}

}  // namespace fleetfit::graph::rewrite
