#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/quantize.h"
#include "fleetfit/graph/shape_inference.h"
#include "graph/is_one_of.h"
#include "graph/passes/all_passes.h"
#include "graph/passes/constants.h"
#include "graph/quantize/merge_activations.h"

namespace fleetfit::graph {
namespace {

std::size_t slot(TensorId id) { return static_cast<std::size_t>(id); }

bool converts(const Node& node) { return is_one_of<QuantizeLinear, DequantizeLinear>(node.op); }

/// The constant parameters of a QuantizeLinear or DequantizeLinear.
std::optional<Quantization> parameters(const Graph& graph, const Node& node) {
  const auto scales = rewrite::float_values(graph, node.inputs[1]);
  if (!scales || scales->empty()) return std::nullopt;
  Quantization q{.scales = *scales, .zero_points = std::vector<std::int32_t>(scales->size(), 0)};
  if (node.inputs.size() > 2 && node.inputs[2] != kNoTensor) {
    const auto points = constant_numbers(graph, node.inputs[2]);
    if (!points || points->size() != scales->size()) return std::nullopt;
    std::transform(points->begin(), points->end(), q.zero_points.begin(),
                   [](double point) { return static_cast<std::int32_t>(point); });
  }
  if (scales->size() == 1) return q;
  const auto& shape = graph.tensor(node.inputs[0]).shape;
  if (!shape) return std::nullopt;
  const auto* quantize = std::get_if<QuantizeLinear>(&node.op);
  const auto axis = quantize != nullptr ? quantize->axis : std::get<DequantizeLinear>(node.op).axis;
  q.axis = static_cast<int>(rewrite::normalized_axis(axis, shape->size()));
  return q;
}

/// Whether two conversions read their parameters from the same tensors.
bool read_same_parameters(const Node& a, const Node& b) {
  return std::equal(a.inputs.begin() + 1, a.inputs.end(), b.inputs.begin() + 1, b.inputs.end());
}

// --- Moves between a DequantizeLinear and what it is for ---

/// Operators of one tensor whose result holds the same values, in whatever order.
bool moves_values(const Node& node) {
  const bool only_moves =
      is_one_of<Slice, Transpose, Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile, Gather,
                DepthToSpace, SpaceToDepth, BatchToSpace, ChannelShuffle, Identity>(node.op);
  const auto* pool = std::get_if<Pool>(&node.op);
  const bool picks = pool != nullptr && pool->kind == PoolKind::max;
  return (only_moves || picks) && !node.activation && node.outputs.size() == 1 &&
         node.outputs[0] != kNoTensor && node.inputs[0] != kNoTensor;
}

/// Inserts pairs of QuantizeLinear and DequantizeLinear that change nothing, so that an operator
/// has them on both sides although values are moved before or after it.
class MoveRounding {
 public:
  explicit MoveRounding(Graph& graph) : graph_(graph) {}

  void run() {
    after_moves();
    before_moves();
  }

 private:
  /// Scale and zero point, as inputs of nodes.
  using Parameters = std::array<TensorId, 2>;

  /// New nodes by the index of the node that they go before.
  using Pairs = std::map<std::size_t, std::vector<Node>>;

  bool is_one_number(TensorId id) const {
    if (id == kNoTensor) return false;
    const auto& tensor = graph_.tensor(id);
    return tensor.data && !tensor.quantization &&
           tensor.data->size_bytes() == size_of(tensor.dtype);
  }

  std::optional<Parameters> common_parameters(const Node& node) const {
    if (node.inputs.size() < 3 || !is_one_number(node.inputs[1]) ||
        !is_one_number(node.inputs[2]) || graph_.tensor(node.inputs[1]).dtype != DType::f32)
      return std::nullopt;
    return Parameters{node.inputs[1], node.inputs[2]};
  }

  /// The tensor rounded to what the parameters can hold.
  TensorId add_pair(TensorId x, const Parameters& p, std::vector<Node>& nodes) {
    const auto tensor = graph_.tensor(x);
    const auto stored = graph_.add_tensor({.name = tensor.name + ".quantized",
                                           .dtype = graph_.tensor(p[1]).dtype,
                                           .shape = tensor.shape});
    const auto real = graph_.add_tensor(
        {.name = tensor.name + ".real", .dtype = DType::f32, .shape = tensor.shape});
    nodes.push_back({.name = tensor.name + ".quantize",
                     .op = QuantizeLinear{},
                     .inputs = {x, p[0], p[1]},
                     .outputs = {stored}});
    nodes.push_back({.name = tensor.name + ".dequantize",
                     .op = DequantizeLinear{},
                     .inputs = {stored, p[0], p[1]},
                     .outputs = {real}});
    return real;
  }

  bool is_output(TensorId id) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end();
  }

  void after_moves() {
    const Consumers read_by(graph_);
    auto& nodes = graph_.nodes;
    std::map<TensorId, Parameters> on_grid;
    std::map<TensorId, TensorId> rounded;
    Pairs pairs;
    const auto is_quantize = [&](int reader) {
      return std::holds_alternative<QuantizeLinear>(nodes[static_cast<std::size_t>(reader)].op);
    };
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      auto& node = nodes[n];
      for (auto& id : node.inputs) {
        if (const auto found = rounded.find(id); found != rounded.end()) id = found->second;
      }
      if (std::holds_alternative<DequantizeLinear>(node.op)) {
        if (const auto p = common_parameters(node)) on_grid.emplace(node.outputs[0], *p);
      }
      if (!moves_values(node) || is_output(node.outputs[0])) continue;
      const auto result = node.outputs[0];
      const auto grid = on_grid.find(node.inputs[0]);
      if (grid == on_grid.end() || std::ranges::all_of(read_by[slot(result)], is_quantize))
        continue;
      const auto p = grid->second;
      rounded[result] = add_pair(result, p, pairs[n + 1]);
      on_grid.emplace(rounded[result], p);
    }
    insert(std::move(pairs));
  }

  void before_moves() {
    const auto made_by = producers(graph_);
    const Consumers read_by(graph_);
    auto& nodes = graph_.nodes;
    std::map<TensorId, Parameters> rounded_next;  // tensors that only a QuantizeLinear reads
    Pairs pairs;
    for (std::size_t n = nodes.size(); n-- > 0;) {
      auto& node = nodes[n];
      if (std::holds_alternative<QuantizeLinear>(node.op)) {
        const auto p = common_parameters(node);
        if (p && read_by[slot(node.inputs[0])].size() == 1 && !is_output(node.inputs[0]))
          rounded_next.emplace(node.inputs[0], *p);
      }
      if (!moves_values(node)) continue;
      const auto x = node.inputs[0];
      const auto next = rounded_next.find(node.outputs[0]);
      const int maker = made_by[slot(x)];
      if (next == rounded_next.end() || maker < 0 || read_by[slot(x)].size() != 1 || is_output(x))
        continue;
      if (std::holds_alternative<DequantizeLinear>(nodes[static_cast<std::size_t>(maker)].op))
        continue;
      const auto p = next->second;
      node.inputs[0] = add_pair(x, p, pairs[n]);
      rounded_next.emplace(x, p);
    }
    insert(std::move(pairs));
  }

  void insert(Pairs pairs) {
    if (pairs.empty()) return;
    std::vector<Node> nodes;
    for (std::size_t n = 0; n <= graph_.nodes.size(); ++n) {
      if (const auto found = pairs.find(n); found != pairs.end())
        std::ranges::move(found->second, std::back_inserter(nodes));
      if (n < graph_.nodes.size()) nodes.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(nodes);
  }

  Graph& graph_;
};

// --- Operators on quantized tensors ---

class Absorption {
 public:
  explicit Absorption(Graph& graph)
      : graph_(graph),
        made_by_(producers(graph)),
        read_by_(graph),
        is_output_(graph.tensors.size(), false),
        absorbed_(graph.nodes.size(), false) {
    for (const auto id : graph.outputs) is_output_[slot(id)] = true;
  }

  void run() {
    std::vector<bool> looked_at(graph_.tensors.size(), false);
    for (const auto& node : graph_.nodes) {
      if (!converts(node)) continue;
      const bool quantizes = std::holds_alternative<QuantizeLinear>(node.op);
      const auto stored = quantizes ? node.outputs[0] : node.inputs[0];
      if (looked_at[slot(stored)]) continue;
      looked_at[slot(stored)] = true;
      if (auto q = meaning(stored)) graph_.tensor(stored).quantization = std::move(q);
    }
    for (auto& node : graph_.nodes) {
      if (can_absorb(node)) absorb(node);
    }
    std::size_t next = 0;
    std::erase_if(graph_.nodes, [&](const Node&) { return absorbed_[next++]; });
    for (auto& node : graph_.nodes) simplify_conversion(node);
  }

 private:
  const Node* maker(TensorId id) const {
    const int n = made_by_[slot(id)];
    return n < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(n)];
  }

  /// What stored numbers stand for, if all who write and read them agree.
  std::optional<Quantization> meaning(TensorId stored) const {
    std::optional<Quantization> common = graph_.tensor(stored).quantization;
    const Node* known = nullptr;  // one with a single scale, with which axes play no part
    const auto agrees = [&](const Node& node) {
      if (known != nullptr && read_same_parameters(*known, node)) return true;
      const auto q = parameters(graph_, node);
      if (!common) common = q;
      if (q && q->scales.size() == 1) known = &node;
      return q && q == common;
    };
    if (const auto* node = maker(stored)) {
      if (!std::holds_alternative<QuantizeLinear>(node->op) || !agrees(*node)) return std::nullopt;
    }
    for (const int reader : read_by_[slot(stored)]) {
      const auto& node = graph_.nodes[static_cast<std::size_t>(reader)];
      if (!std::holds_alternative<DequantizeLinear>(node.op) || node.inputs[0] != stored ||
          !agrees(node))
        return std::nullopt;
    }
    return common;
  }

  /// The quantized tensor whose real values these are.
  std::optional<TensorId> stored_input(TensorId real) const {
    const auto* node = maker(real);
    if (node == nullptr || !std::holds_alternative<DequantizeLinear>(node->op)) return std::nullopt;
    if (!graph_.tensor(node->inputs[0]).quantization) return std::nullopt;
    return node->inputs[0];
  }

  /// Index of the QuantizeLinear that alone needs a tensor.
  std::optional<std::size_t> only_quantized(TensorId real) const {
    const auto& readers = read_by_[slot(real)];
    if (readers.size() != 1 || is_output_[slot(real)]) return std::nullopt;
    const auto n = static_cast<std::size_t>(readers.front());
    const auto& node = graph_.nodes[n];
    if (!std::holds_alternative<QuantizeLinear>(node.op) || node.inputs[0] != real ||
        !graph_.tensor(node.outputs[0]).quantization)
      return std::nullopt;
    return n;
  }

  /// Numbers that say what to do rather than take part: the factors of Resize, the value of Pad.
  static bool is_setting(const Operator& op, std::size_t input) {
    return (std::holds_alternative<Resize>(op) && input > 0) ||
           (std::holds_alternative<Pad>(op) && input == 2);
  }

  bool can_absorb(const Node& node) const {
    if (is_one_of<Unknown, QuantizeLinear, DequantizeLinear, Requantize, Cast, Constant,
                  MultiHeadAttention>(node.op))
      return false;
    std::optional<DType> type;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto id = node.inputs[i];
      if (id == kNoTensor || !is_float(graph_.tensor(id).dtype) || is_setting(node.op, i)) continue;
      const auto stored = stored_input(id);
      if (!stored) return false;
      if (!type) type = graph_.tensor(*stored).dtype;
    }
    return type && std::all_of(node.outputs.begin(), node.outputs.end(), [&](TensorId id) {
             if (id == kNoTensor || !is_float(graph_.tensor(id).dtype)) return true;
             const auto quantize = only_quantized(id);
             return quantize && graph_.tensor(graph_.nodes[*quantize].outputs[0]).dtype == *type;
           });
  }

  void absorb(Node& node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto id = node.inputs[i];
      if (id == kNoTensor || is_setting(node.op, i)) continue;
      if (const auto stored = stored_input(id)) node.inputs[i] = *stored;
    }
    for (auto& id : node.outputs) {
      if (id == kNoTensor || !is_float(graph_.tensor(id).dtype)) continue;
      const auto quantize = *only_quantized(id);
      absorbed_[quantize] = true;
      id = graph_.nodes[quantize].outputs[0];
    }
  }

  void simplify_conversion(Node& node) const {
    if (!converts(node)) return;
    const bool quantizes = std::holds_alternative<QuantizeLinear>(node.op);
    const auto& stored = graph_.tensor(quantizes ? node.outputs[0] : node.inputs[0]);
    if (!stored.quantization) return;
    node.inputs.resize(1);
    node.op = Requantize{quantizes ? stored.dtype : DType::f32};
  }

  Graph& graph_;
  std::vector<int> made_by_;
  Consumers read_by_;
  std::vector<bool> is_output_;
  std::vector<bool> absorbed_;  // QuantizeLinears that their maker has taken in
};

Status absorb_conversions(Graph& graph) {
  FLEETFIT_TRY(rewrite::fuse_activations(graph));
  MoveRounding(graph).run();
  Absorption(graph).run();
  return {};
}

}  // namespace

Status to_quantized_tensors(Graph& graph, const QuantizedTensorOptions& options) {
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), converts)) {
    FLEETFIT_TRY(absorb_conversions(graph));
  }
  FLEETFIT_TRY(rewrite::remove_dead_nodes(graph));
  if (options.merge_activations) {
    FLEETFIT_TRY(quantization::merge_activations(graph));
  }
  return infer_shapes(graph);
}

}  // namespace fleetfit::graph
