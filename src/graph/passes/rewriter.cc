#include "graph/passes/rewriter.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fleetfit::graph::rewrite {
namespace {

std::size_t slot(TensorId id) { return static_cast<std::size_t>(id); }

}  // namespace

Rewriter::Ends::Ends(const Graph& graph)
    : maker(producers(graph)),
      is_output(graph.tensors.size(), false),
      is_input(graph.tensors.size(), false) {
  for (const auto id : graph.outputs) is_output[slot(id)] = true;
  for (const auto id : graph.inputs) is_input[slot(id)] = true;
}

Rewriter::Rewriter(Graph& graph)
    : graph_(graph), removed_(graph.nodes.size(), false), place_(graph.nodes.size()) {
  std::iota(place_.begin(), place_.end(), 0);
}

Rewriter::Ends& Rewriter::ends() const {
  if (!ends_) ends_.emplace(graph_);
  return *ends_;
}

Rewriter::Readers& Rewriter::all_readers() const {
  if (readers_) return *readers_;
  readers_.emplace(graph_.tensors.size());
  for (int n = 0; n < node_count(); ++n) {
    if (removed(n)) continue;
    for (const auto id : node(n).inputs) {
      if (id != kNoTensor) (*readers_)[slot(id)].push_back(n);
    }
  }
  return *readers_;
}

void Rewriter::cover_new_tensors() {
  const auto tensors = graph_.tensors.size();
  all_readers().resize(tensors);
  ends().maker.resize(tensors, kNoNode);
  ends().is_output.resize(tensors, false);
  ends().is_input.resize(tensors, false);
}

int Rewriter::maker(TensorId id) const {
  const auto& makers = ends().maker;
  if (id == kNoTensor || slot(id) >= makers.size()) return kNoNode;
  return makers[slot(id)];
}

const std::vector<int>& Rewriter::readers(TensorId id) const { return all_readers()[slot(id)]; }

bool Rewriter::only_first_output_needed(int index) const {
  const auto& outputs = node(index).outputs;
  return std::all_of(outputs.begin() + 1, outputs.end(), [&](TensorId id) {
    return id == kNoTensor || (readers(id).empty() && !is_output(id));
  });
}

bool Rewriter::are_private(const std::vector<int>& nodes) const {
  const auto inside = [&](int reader) {
    return std::find(nodes.begin(), nodes.end(), reader) != nodes.end();
  };
  return std::all_of(nodes.begin() + 1, nodes.end(), [&](int index) {
    const auto& outputs = node(index).outputs;
    return std::all_of(outputs.begin(), outputs.end(), [&](TensorId id) {
      if (id == kNoTensor) return true;
      return !is_output(id) && std::all_of(readers(id).begin(), readers(id).end(), inside);
    });
  });
}

void Rewriter::add_reader(TensorId id, int index) {
  if (id == kNoTensor) return;
  cover_new_tensors();
  all_readers()[slot(id)].push_back(index);
}

void Rewriter::drop_reader(TensorId id, int index) {
  if (id == kNoTensor) return;
  auto& readers = all_readers()[slot(id)];
  const auto found = std::find(readers.begin(), readers.end(), index);
  if (found != readers.end()) readers.erase(found);
}

void Rewriter::set_inputs(int index, std::vector<TensorId> inputs) {
  for (const auto id : node(index).inputs) drop_reader(id, index);
  for (const auto id : inputs) add_reader(id, index);
  node(index).inputs = std::move(inputs);
  changed_ = true;
}

void Rewriter::remove(int index) {
  for (const auto id : node(index).inputs) drop_reader(id, index);
  for (const auto id : node(index).outputs) {
    if (id != kNoTensor && ends().maker[slot(id)] == index) ends().maker[slot(id)] = kNoNode;
  }
  removed_[static_cast<std::size_t>(index)] = true;
  changed_ = true;
}

void Rewriter::remove_unread(TensorId id) {
  std::vector<TensorId> pending{id};
  while (!pending.empty()) {
    const int index = maker(pending.back());
    pending.pop_back();
    if (index == kNoNode) continue;
    const auto& outputs = node(index).outputs;
    const bool needed = std::any_of(outputs.begin(), outputs.end(), [&](TensorId output) {
      return output != kNoTensor && (!readers(output).empty() || is_output(output));
    });
    if (needed) continue;
    pending.insert(pending.end(), node(index).inputs.begin(), node(index).inputs.end());
    remove(index);
  }
}

void Rewriter::replace_reads(TensorId from, TensorId to) {
  auto readers = std::exchange(all_readers()[slot(from)], {});
  for (const int reader : readers) {
    auto& inputs = node(reader).inputs;
    *std::find(inputs.begin(), inputs.end(), from) = to;
    add_reader(to, reader);
  }
}

bool Rewriter::bypass(int index, TensorId source) {
  const auto result = node(index).outputs.front();
  auto& kept = graph_.tensor(source);
  auto& gone = graph_.tensor(result);
  if (kept.dtype != gone.dtype || kept.quantization != gone.quantization) return false;
  if (!is_output(result)) {
    remove(index);
    if (!kept.shape) kept.shape = gone.shape;
    replace_reads(result, source);
    return true;
  }
  // The graph's output keeps its name, so what made `source` makes it directly.
  const int origin = maker(source);
  if (origin == kNoNode || is_output(source) || ends().is_input[slot(source)] || kept.is_constant())
    return false;
  remove(index);
  if (!gone.shape) gone.shape = kept.shape;
  auto& outputs = node(origin).outputs;
  *std::find(outputs.begin(), outputs.end(), source) = result;
  ends().maker[slot(source)] = kNoNode;
  ends().maker[slot(result)] = origin;
  replace_reads(source, result);
  return true;
}

void Rewriter::take_over(int index, int follower) {
  const auto result = node(follower).outputs.front();
  ends().maker[slot(node(index).outputs.front())] = kNoNode;
  node(index).activation = node(follower).activation;
  remove(follower);
  node(index).outputs.front() = result;
  ends().maker[slot(result)] = index;
}

Result<bool> Rewriter::finish() {
  if (!changed_) return false;
  std::vector<int> order;
  for (int n = 0; n < node_count(); ++n) {
    if (!removed(n)) order.push_back(n);
  }
  // Added nodes have higher indices than the one that they go before.
  const auto key = [&](int n) {
    const int place = place_[static_cast<std::size_t>(n)];
    return std::pair(place, n == place ? node_count() : n);
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (const int n : order) nodes.push_back(std::move(node(n)));
  graph_.nodes = std::move(nodes);
  FLEETFIT_TRY(sort_nodes(graph_));
  return true;
}

bool touches_quantized(const Graph& graph, const Node& node) {
  const auto quantized = [&](TensorId id) {
    return id != kNoTensor && graph.tensor(id).quantization.has_value();
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), quantized) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), quantized);
}

bool is_plain_float(const Graph& graph, TensorId id) {
  return id != kNoTensor && graph.tensor(id).dtype == DType::f32 && !graph.tensor(id).quantization;
}

bool is_pure_move(const Graph& graph, const Node& node) {
  const auto& before = graph.tensor(node.inputs.front());
  const auto& after = graph.tensor(node.outputs.front());
  const bool per_axis = before.quantization && before.quantization->axis;
  return !node.activation && !per_axis && before.shape && after.shape &&
         before.dtype == after.dtype && before.quantization == after.quantization;
}

bool same_shape(const Graph& graph, TensorId a, TensorId b) {
  const auto& shape = graph.tensor(a).shape;
  return shape && shape == graph.tensor(b).shape;
}

}  // namespace fleetfit::graph::rewrite
