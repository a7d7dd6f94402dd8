#include "elastic/cut.h"

#include <algorithm>
#include <map>
#include <set>

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

std::size_t slot(TensorId id) { return static_cast<std::size_t>(id); }

template <class... Ops>
bool is_any(const Node& node) {
  return (std::holds_alternative<Ops>(node.op) || ...);
}

bool has_matrix(const Node& node) {
  return is_any<graph::Conv, graph::ConvTranspose, graph::Gemm, graph::MatMul,
                graph::MultiHeadAttention>(node);
}

bool moves_data(const Node& node) {
  return is_any<graph::Reshape, graph::Flatten, graph::Squeeze, graph::Unsqueeze, graph::Transpose>(
      node);
}

class Cuts {
 public:
  explicit Cuts(const Graph& graph)
      : graph_(graph),
        is_static_(graph::static_tensors(graph)),
        producers_(graph::producers(graph)),
        consumers_(graph) {}

  std::vector<Segment> find() {
    std::vector<Segment> segments;
    auto left = readers_left();
    std::set<TensorId> live;
    for (const auto id : graph_.inputs) live.insert(id);
    std::size_t first = 0;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      step(graph_.nodes[n], left, live);
      const bool last = n + 1 == graph_.nodes.size();
      if (!last && live.size() == 1 && may_cut_at(*live.begin(), first)) {
        segments.push_back({first, n + 1});
        first = n + 1;
      }
    }
    segments.push_back({first, graph_.nodes.size()});
    return segments;
  }

 private:
  /// How many nodes still read each tensor; the model's outputs are read at the end.
  std::vector<std::size_t> readers_left() const {
    std::vector<std::size_t> left;
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) left.push_back(consumers_[t].size());
    for (const auto id : graph_.outputs) ++left[slot(id)];
    return left;
  }

  void step(const Node& node, std::vector<std::size_t>& left, std::set<TensorId>& live) const {
    std::set<TensorId> read(node.inputs.begin(), node.inputs.end());
    read.erase(kNoTensor);
    for (const auto id : read) {
      if (--left[slot(id)] == 0) live.erase(id);
    }
    for (const auto id : node.outputs) {
      if (id != kNoTensor && left[slot(id)] > 0 && !is_static_[slot(id)]) live.insert(id);
    }
  }

  bool may_cut_at(TensorId id, std::size_t first) const {
    const auto& tensor = graph_.tensor(id);
    if (!tensor.shape || !graph::is_float(tensor.dtype) || tensor.quantization) return false;
    const int maker = producers_[slot(id)];
    if (maker < static_cast<int>(first) || !has_layer(first, static_cast<std::size_t>(maker)))
      return false;  // pools and the like go with what follows
    return std::ranges::any_of(consumers_[slot(id)],
                               [&](int reader) { return begins_layer(id, reader, first); });
  }

  /// Whether all that reads the tensor takes slices of it.
  bool is_sliced(TensorId id) const {
    return std::ranges::all_of(consumers_[slot(id)], [&](int reader) {
      return is_any<graph::Slice>(graph_.nodes[static_cast<std::size_t>(reader)]);
    });
  }

  bool has_layer(std::size_t first, std::size_t last) const {
    for (std::size_t n = first; n <= last; ++n) {
      if (has_matrix(graph_.nodes[n])) return true;
    }
    return false;
  }

  /// Whether the reader begins something that no runtime fuses with what made the tensor.
  bool begins_layer(TensorId id, int reader, std::size_t first) const {
    const Node& node = graph_.nodes[static_cast<std::size_t>(reader)];
    const bool alone = consumers_[slot(id)].size() == 1;
    const Node& maker = graph_.nodes[static_cast<std::size_t>(producers_[slot(id)])];
    if (has_matrix(node) || is_any<graph::Split, graph::Resize, graph::Pad>(node)) return true;
    if (is_any<graph::Slice>(node)) return is_sliced(id);
    if (is_any<graph::GlobalPool, graph::Reduce>(node)) return alone;  // else it is a gate
    if (is_any<graph::LayerNorm, graph::InstanceNorm>(node))
      return !alone || is_any<graph::LayerNorm>(graph_.nodes[first]);
    if (is_any<graph::BatchNorm>(node)) return !alone || joins(maker);
    return moves_data(node) && !moves_data(maker) && leads_to_matrix(node);
  }

  /// Whether a node brings several tensors together.
  bool joins(const Node& node) const {
    const auto dynamic = std::ranges::count_if(
        node.inputs, [&](TensorId id) { return id != kNoTensor && !is_static_[slot(id)]; });
    return dynamic > 1 || is_any<graph::Concat, graph::Pool>(node);
  }

  /// As in a classifier, where an image becomes a row.
  bool leads_to_matrix(const Node& node) const {
    const Node* at = &node;
    while (moves_data(*at)) {
      const auto readers = consumers_[slot(at->outputs[0])];
      if (readers.size() != 1) return false;
      at = &graph_.nodes[static_cast<std::size_t>(readers[0])];
    }
    return is_any<graph::Gemm, graph::MatMul>(*at);
  }

  const Graph& graph_;
  std::vector<bool> is_static_;
  std::vector<int> producers_;
  graph::Consumers consumers_;
};

/// The names of the open dimensions of a tensor within the model: the batch, if it has one.
std::vector<std::string> open_batch(const Graph& graph, const graph::Tensor& tensor) {
  if (graph.inputs.empty() || !tensor.shape || tensor.shape->empty()) return {};
  const auto& input = graph.tensor(graph.inputs[0]);
  const bool open = !input.symbols.empty() && !input.symbols[0].empty() && input.shape &&
                    !input.shape->empty() && input.shape->front() == tensor.shape->front();
  if (!open) return {};
  std::vector<std::string> symbols(tensor.shape->size());
  symbols[0] = input.symbols[0];
  return symbols;
}

class Extraction {
 public:
  explicit Extraction(const Graph& graph)
      : graph_(graph),
        is_static_(graph::static_tensors(graph)),
        producers_(graph::producers(graph)) {}

  Graph run(const Segment& segment) {
    part_.name = graph_.name;
    for (std::size_t n = segment.first; n < segment.end; ++n) add_node(n);
    add_ends(segment);
    return std::move(part_);
  }

 private:
  void add_node(std::size_t n) {
    if (!added_.insert(n).second) return;
    const Node& node = graph_.nodes[n];
    // What other parts computed from constants alone is computed here as well.
    for (const auto id : node.inputs) {
      if (id != kNoTensor && is_static_[slot(id)] && producers_[slot(id)] >= 0)
        add_node(static_cast<std::size_t>(producers_[slot(id)]));
    }
    Node copy = node;
    for (auto* ids : {&copy.inputs, &copy.outputs}) {
      for (auto& id : *ids) id = take(id);
    }
    part_.nodes.push_back(std::move(copy));
  }

  TensorId take(TensorId id) {
    if (id == kNoTensor) return id;
    const auto [found, is_new] = ids_.try_emplace(id, kNoTensor);
    if (is_new) found->second = part_.add_tensor(graph_.tensor(id));
    return found->second;
  }

  void add_ends(const Segment& segment) {
    if (segment.first == 0) {
      for (const auto id : graph_.inputs) part_.inputs.push_back(take(id));
    }
    std::set<TensorId> made;
    for (const auto& node : part_.nodes) made.insert(node.outputs.begin(), node.outputs.end());
    for (const auto& node : part_.nodes) {
      for (const auto id : node.inputs) {
        if (id == kNoTensor || part_.tensor(id).is_constant() || made.contains(id)) continue;
        if (std::ranges::find(part_.inputs, id) != part_.inputs.end()) continue;
        part_.inputs.push_back(id);
        part_.tensor(id).symbols = open_batch(graph_, part_.tensor(id));
      }
    }
    if (segment.end == graph_.nodes.size()) {
      for (const auto id : graph_.outputs) part_.outputs.push_back(take(id));
      return;
    }
    for (std::size_t n = segment.first; n < segment.end; ++n) {
      for (const auto id : graph_.nodes[n].outputs) {
        if (id != kNoTensor && !is_static_[slot(id)] && is_read_behind(id, segment.end))
          part_.outputs.push_back(take(id));
      }
    }
  }

  bool is_read_behind(TensorId id, std::size_t end) const {
    for (std::size_t n = end; n < graph_.nodes.size(); ++n) {
      const auto& inputs = graph_.nodes[n].inputs;
      if (std::ranges::find(inputs, id) != inputs.end()) return true;
    }
    return std::ranges::find(graph_.outputs, id) != graph_.outputs.end();
  }

  const Graph& graph_;
  std::vector<bool> is_static_;
  std::vector<int> producers_;
  Graph part_;
  std::set<std::size_t> added_;
  std::map<TensorId, TensorId> ids_;
};

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

std::vector<Segment> find_segments(const Graph& graph) { return Cuts(graph).find(); }

Graph extract(const Graph& graph, const Segment& segment) { return Extraction(graph).run(segment); }

}  // namespace fleetfit::elastic
