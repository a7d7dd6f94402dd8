#include "cost/prepare.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "fleetfit/graph/links.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::cost {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::Links;
using graph::Node;
using graph::TensorId;

// Passes keep names of what they keep, so names that are indices tell where things come from.
constexpr char kNodeMark = 'n';
constexpr char kTensorMark = 't';

void number_names(Graph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    graph.nodes[i].name = kNodeMark + std::to_string(i);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i)
    graph.tensors[i].name = kTensorMark + std::to_string(i);
}

std::optional<int> number_in(std::string_view name, char mark) {
  int number = 0;
  if (name.size() < 2 || name.front() != mark) return std::nullopt;
  const auto* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + 1, end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

/// Of a tensor, or of one with the same values in another layout.
std::optional<int> tensor_number(const graph::Tensor& tensor) {
  std::string_view name = tensor.name;
  for (const std::string_view suffix : {"_nhwc", "_nchw"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  return number_in(name, kTensorMark);
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
  FLEETFIT_TRY(graph::run_passes(graph, passes));
  if (quantized && computes_with_8_bits(graph)) {
    auto ok = graph::to_quantized_tensors(graph, {.merge_activations = merged});
    if (!ok) return ok;
    FLEETFIT_TRY(graph::run_passes(graph, passes));
  }
  for (const auto& layout : layouts) {
    // Without a transpose there is none to be saved.
    if (!has_transpose(graph)) break;
    FLEETFIT_TRY(graph::run_pass(graph, layout));
  }
  return {};
}

int count_operators(const Graph& graph) {
  const Links links(graph);
  int count = 0;
  for (const Node& node : graph.nodes) {
    if (!links.is_static(node)) count += node.activation ? 2 : 1;
  }
  return count;
}

/// What is to be remembered of a graph with numbered names when passes change it.
struct Outline {
  struct Item {
    int number;  // of the node in the file
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
  };

  explicit Outline(const Graph& graph) : maker(producers(graph)) {
    const Links links(graph);
    nodes.reserve(graph.nodes.size());
    for (const Node& node : graph.nodes) {
      nodes.push_back({*number_in(node.name, kNodeMark), node.inputs, node.outputs});
      is_static.push_back(links.is_static(node));
    }
    for (const auto& tensor : graph.tensors) numbers.push_back(tensor_number(tensor));
  }

  std::vector<Item> nodes;
  std::vector<bool> is_static;
  std::vector<int> maker;                   // of each tensor
  std::vector<std::optional<int>> numbers;  // of each tensor in the file
};

/// Finds for each node of `after` those of the file that lie between its inputs and outputs,
/// according to what the graph was `before`.
class OriginFinder {
 public:
  OriginFinder(const Graph& file, const Outline& before, const Graph& after)
      : file_(file),
        before_(before),
        after_(after),
        claimed_(before.nodes.size(), false),
        alive_(before.numbers.size(), false),
        tensor_(file.tensors.size(), kNoTensor) {
    for (std::size_t i = 0; i < before.numbers.size(); ++i) {
      if (const auto number = before.numbers[i]) tensor_[slot(*number)] = static_cast<TensorId>(i);
    }
    for (const Node& node : after.nodes) {
      for (const TensorId id : node.outputs) {
        if (const TensorId old = tensor_before(id); old != kNoTensor) alive_[slot(old)] = true;
      }
    }
  }

  std::vector<std::vector<int>> find() {
    std::vector<std::vector<int>> origins;
    for (const Node& node : after_.nodes) origins.push_back(origins_of(node));
    return origins;
  }

 private:
  static std::size_t slot(int index) { return static_cast<std::size_t>(index); }

  const Node& in_file(int index) const {
    return file_.nodes[slot(before_.nodes[slot(index)].number)];
  }

  TensorId tensor_before(TensorId id) const {
    if (id == kNoTensor || after_.tensor(id).is_constant()) return kNoTensor;
    const auto number = tensor_number(after_.tensor(id));
    return number && slot(*number) < tensor_.size() ? tensor_[slot(*number)] : kNoTensor;
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
    for (int& index : found) index = before_.nodes[slot(index)].number;
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
    std::ranges::sort(found);
    std::erase_if(found, [&](int index) {
      const auto& [number, inputs, outputs] = before_.nodes[slot(index)];
      const Node& node = in_file(index);
      const bool reads_dropped = !inputs.empty() && dropped.contains(inputs.front());
      const bool drop = is_move(file_, node) ||
                        (std::holds_alternative<graph::QuantizeLinear>(node.op) && reads_dropped);
      if (drop) dropped.insert(outputs.begin(), outputs.end());
      if (drop) moved.insert(inputs.begin(), inputs.end());
      return drop;
    });
    std::erase_if(found, [&](int index) {
      return std::holds_alternative<graph::DequantizeLinear>(in_file(index).op) &&
             moved.contains(before_.nodes[slot(index)].outputs.front());
    });
  }

  /// A node whose outputs are new may still be called after one of the file.
  void claim_namesake(const Node& node, std::vector<int>& found) {
    const auto number = number_in(node.name, kNodeMark);
    for (std::size_t i = 0; number && i < before_.nodes.size(); ++i) {
      if (before_.nodes[i].number == *number) claim(static_cast<int>(i), found);
    }
  }

  void claim_maker(TensorId id, std::vector<int>& found) {
    const int index = before_.maker[slot(id)];
    if (index >= 0) claim(index, found);
  }

  void claim(int index, std::vector<int>& found) {
    if (claimed_[slot(index)] || before_.is_static[slot(index)]) return;
    claimed_[slot(index)] = true;
    found.push_back(index);
    for (const TensorId id : before_.nodes[slot(index)].inputs) {
      if (id != kNoTensor && !alive_[slot(id)]) claim_maker(id, found);
    }
  }

  const Graph& file_;
  const Outline& before_;
  const Graph& after_;
  std::vector<bool> claimed_;
  std::vector<bool> alive_;       // tensors of `before` that `after` still makes
  std::vector<TensorId> tensor_;  // of `before`, by the number in the name
};

}  // namespace

Result<PreparedGraph> prepare_graph(const Graph& graph, const KernelRuleData& rules) {
  static constexpr std::array kCleaning{"fold_constants", "remove_identities", "remove_dead_nodes"};
  PreparedGraph prepared{.graph = graph};
  number_names(prepared.graph);
  for (const char* name : kCleaning) {
    FLEETFIT_TRY(graph::run_pass(prepared.graph, name));
  }
  const Outline clean(prepared.graph);
  prepared.operators_before = count_operators(prepared.graph);
  if (auto ok = run_preparation(prepared.graph, rules.prepare); !ok) {
    return tl::unexpected(ok.error());
  }
  prepared.origins = OriginFinder(graph, clean, prepared.graph).find();
  return prepared;
}

}  // namespace fleetfit::cost
