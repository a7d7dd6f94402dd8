#include "cost/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <span>

#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::cost {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::Node;
using graph::TensorId;

// Passes keep names of what they keep, so names that are indices tell where things come from.
constexpr char kNodeMark = 'n';
constexpr char kTensorMark = 't';

void number_names(Graph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    graph.nodes[i].name = fmt::format("{}{}", kNodeMark, i);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i)
    graph.tensors[i].name = fmt::format("{}{}", kTensorMark, i);
}

std::optional<int> number_in(std::string_view name, char mark) {
  int number = 0;
  // The same values in another layout.
  for (const std::string_view suffix : {"_nhwc", "_nchw"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  if (name.size() < 2 || name.front() != mark) return std::nullopt;
  const auto* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + 1, end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

bool computes_with_8_bits(const Graph& graph) {
  return std::ranges::any_of(graph.tensors,
                             [](const graph::Tensor& t) { return t.quantization.has_value(); }) ||
         std::ranges::any_of(graph.nodes, [](const Node& node) {
           return std::holds_alternative<graph::QuantizeLinear>(node.op) ||
                  std::holds_alternative<graph::DequantizeLinear>(node.op);
         });
}

bool has_transpose(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return std::holds_alternative<graph::Transpose>(node.op);
  });
}

bool is_layout_pass(std::string_view name) { return name.starts_with("layout_"); }

/// Passes are run until nothing changes, before and after the step to quantized tensors; layouts
/// are brought in line once, at the end.
Status run_preparation(Graph& graph, const std::vector<std::string>& steps) {
  std::vector<std::string> passes;
  std::vector<std::string> layouts;
  bool quantized = false;
  bool merged = false;
  for (const auto& step : steps) {
    if (step == kQuantizedTensors || step == kQuantizedActivations) {
      quantized = true;
      merged = merged || step == kQuantizedActivations;
    } else {
      (is_layout_pass(step) ? layouts : passes).push_back(step);
    }
  }
  if (auto ok = graph::run_passes(graph, passes); !ok) return ok;
  if (quantized && computes_with_8_bits(graph)) {
    auto ok = graph::to_quantized_tensors(graph, {.merge_activations = merged});
    if (!ok) return ok;
    if (auto again = graph::run_passes(graph, passes); !again) return again;
  }
  for (const auto& layout : layouts) {
    // Without a transpose there is none to be saved.
    if (!has_transpose(graph)) break;
    if (auto ok = graph::run_pass(graph, layout); !ok) return tl::unexpected(ok.error());
  }
  return {};
}

int count_operators(const Graph& graph) {
  const auto is_static = graph::static_tensors(graph);
  int count = 0;
  for (const Node& node : graph.nodes) {
    if (is_static_node(node, is_static)) continue;
    count += node.activation ? 2 : 1;
  }
  return count;
}

/// Finds for each node of `after` those nodes of `before` that lie between its inputs and outputs.
class OriginFinder {
 public:
  OriginFinder(const Graph& before, const Graph& after)
      : before_(before),
        after_(after),
        maker_(producers(before)),
        is_static_(static_tensors(before)),
        claimed_(before.nodes.size(), false),
        alive_(before.tensors.size(), false) {
    for (std::size_t i = 0; i < before.tensors.size(); ++i) {
      if (const auto number = number_in(before.tensors[i].name, kTensorMark)) {
        if (static_cast<std::size_t>(*number) >= tensor_.size())
          tensor_.resize(static_cast<std::size_t>(*number) + 1, kNoTensor);
        tensor_[static_cast<std::size_t>(*number)] = static_cast<TensorId>(i);
      }
    }
    for (const Node& node : after.nodes) {
      for (const TensorId id : node.outputs) {
        if (const TensorId old = tensor_before(id); old != kNoTensor)
          alive_[static_cast<std::size_t>(old)] = true;
      }
    }
  }

  std::vector<std::vector<int>> find() {
    std::vector<std::vector<int>> origins;
    for (const Node& node : after_.nodes) origins.push_back(origins_of(node));
    return origins;
  }

 private:
  TensorId tensor_before(TensorId id) const {
    if (id == kNoTensor || after_.tensor(id).is_constant()) return kNoTensor;
    const auto number = number_in(after_.tensor(id).name, kTensorMark);
    if (!number || static_cast<std::size_t>(*number) >= tensor_.size()) return kNoTensor;
    return tensor_[static_cast<std::size_t>(*number)];
  }

  std::vector<int> origins_of(const Node& node) {
    std::vector<int> found;
    bool known = false;
    for (const TensorId id : node.outputs) {
      const TensorId old = tensor_before(id);
      known = known || old != kNoTensor;
      if (old != kNoTensor) claim_maker(old, found);
    }
    if (!known) claim_namesake(node, found);
    if (!is_move(after_, node)) drop_moves(found);
    std::ranges::sort(found);
    for (int& index : found)
      index = *number_in(before_.nodes[static_cast<std::size_t>(index)].name, kNodeMark);
    return found;
  }

  static bool is_move(const Graph& graph, const Node& node) {
    const auto kind = plain_kind(graph, node);
    return kind == "transpose" || kind == "reshape";
  }

  /// Transposes and reshapes that became part of something else are not done at all, and neither
  /// is what packs and unpacks their results.
  void drop_moves(std::vector<int>& found) const {
    std::set<TensorId> dropped;  // results of moves
    std::set<TensorId> moved;    // what they read
    const auto reads_dropped = [&](const Node& node) {
      return dropped.contains(node.inputs.empty() ? kNoTensor : node.inputs.front());
    };
    std::ranges::sort(found);
    std::erase_if(found, [&](int index) {
      const Node& node = before_.nodes[static_cast<std::size_t>(index)];
      const bool drop =
          is_move(before_, node) ||
          (std::holds_alternative<graph::QuantizeLinear>(node.op) && reads_dropped(node));
      if (drop) dropped.insert(node.outputs.begin(), node.outputs.end());
      if (drop) moved.insert(node.inputs.begin(), node.inputs.end());
      return drop;
    });
    std::erase_if(found, [&](int index) {
      const Node& node = before_.nodes[static_cast<std::size_t>(index)];
      return std::holds_alternative<graph::DequantizeLinear>(node.op) &&
             moved.contains(node.outputs.front());
    });
  }

  /// A node whose outputs are new may still be called after one of the file.
  void claim_namesake(const Node& node, std::vector<int>& found) {
    for (std::size_t i = 0; i < before_.nodes.size(); ++i) {
      if (before_.nodes[i].name == node.name) claim(static_cast<int>(i), found);
    }
  }

  void claim_maker(TensorId id, std::vector<int>& found) {
    const int index = maker_[static_cast<std::size_t>(id)];
    if (index >= 0) claim(index, found);
  }

  void claim(int index, std::vector<int>& found) {
    const Node& node = before_.nodes[static_cast<std::size_t>(index)];
    if (claimed_[static_cast<std::size_t>(index)] || is_static_node(node, is_static_)) return;
    claimed_[static_cast<std::size_t>(index)] = true;
    found.push_back(index);
    for (const TensorId id : node.inputs) {
      if (id != kNoTensor && !alive_[static_cast<std::size_t>(id)]) claim_maker(id, found);
    }
  }

  const Graph& before_;
  const Graph& after_;
  std::vector<int> maker_;
  std::vector<bool> is_static_;
  std::vector<bool> claimed_;
  std::vector<bool> alive_;       // tensors of `before` that `after` still makes
  std::vector<TensorId> tensor_;  // of `before`, by the number in the name
};

}  // namespace

bool is_static_node(const Node& node, const std::vector<bool>& is_static) {
  return std::ranges::all_of(node.outputs, [&](TensorId id) {
    return id == kNoTensor || is_static[static_cast<std::size_t>(id)];
  });
}

Result<PreparedGraph> prepare_graph(const Graph& graph, const KernelRuleData& rules) {
  static constexpr std::array kCleaning{"fold_constants", "remove_identities", "remove_dead_nodes"};
  Graph clean = graph;
  number_names(clean);
  for (const char* name : kCleaning) {
    if (auto ok = graph::run_pass(clean, name); !ok) return tl::unexpected(ok.error());
  }
  PreparedGraph prepared{.graph = clean, .operators_before = count_operators(clean)};
  if (auto ok = run_preparation(prepared.graph, rules.prepare); !ok) {
    return tl::unexpected(ok.error());
  }
  prepared.origins = OriginFinder(clean, prepared.graph).find();
  return prepared;
}

}  // namespace fleetfit::cost
