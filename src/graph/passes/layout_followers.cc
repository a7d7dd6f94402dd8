#include <algorithm>
#include <cstring>

#include "graph/operators/traits.h"
#include "graph/passes/constants.h"
#include "graph/passes/layout_adaptation.h"

namespace fleetfit::graph::rewrite {
namespace {

std::size_t data_inputs(const Node& node) {
  return traits(node.op).data_inputs == DataInputs::first ? 1 : node.inputs.size();
}

bool is_single(const Tensor& tensor) { return tensor.shape && elements(*tensor.shape) == 1; }

// Elements to be transposed to run the node in each form; nothing if the moved form is impossible
// or no input has it.
struct Effort {
  std::int64_t plain = 0;
  std::int64_t moved = 0;
};
std::optional<Effort> effort(const LayoutForms& forms, const Node& node, std::size_t rank) {
  Effort effort;
  bool any_moved = false;
  const bool broadcasts = traits(node.op).data_inputs != DataInputs::joined;
  for (std::size_t i = 0; i < data_inputs(node); ++i) {
    const auto id = node.inputs[i];
    if (id == kNoTensor || !forms.graph().tensor(id).shape) return std::nullopt;
    const auto& tensor = forms.graph().tensor(id);
    const auto input_rank = tensor.shape->size();
    if (tensor.is_constant() && input_rank <= rank && (broadcasts || input_rank == rank)) continue;
    if (input_rank != rank) {
      if (broadcasts && is_single(tensor) && input_rank < rank) continue;
      return std::nullopt;
    }
    any_moved = any_moved || forms.has_moved(id);
    if (!forms.has_plain(id)) effort.plain += elements(*tensor.shape);
    if (!forms.has_moved(id)) effort.moved += elements(*tensor.shape);
  }
  return any_moved ? std::optional(effort) : std::nullopt;
}

TensorId moved_operand(LayoutForms& forms, TensorId id, std::size_t rank) {
  const auto& tensor = forms.graph().tensor(id);
  if (tensor.is_constant()) return forms.moved_constant(id, rank);
  return tensor.shape->size() == rank ? forms.moved(id) : forms.plain(id);
}

bool results_can_move(const Graph& graph, const Node& node, std::size_t rank) {
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](TensorId id) {
    return id != kNoTensor && graph.tensor(id).shape && graph.tensor(id).shape->size() == rank;
  });
}

std::size_t image_rank(const Graph& graph, const Node& node) {
  std::size_t rank = 0;
  for (std::size_t i = 0; i < data_inputs(node); ++i) {
    const auto id = node.inputs[i];
    if (id != kNoTensor && graph.tensor(id).shape)
      rank = std::max(rank, graph.tensor(id).shape->size());
  }
  return rank;
}

}  // namespace

Adaptation::Adaptation(LayoutForms& forms, const Node& node, std::size_t rank)
    : inputs(node.inputs),
      forms_(forms),
      outputs_(node.outputs.size()),
      rank_(rank),
      perm_(forms.perm(rank)),
      place_(inverse(perm_)) {}

bool Adaptation::is_replaced(std::size_t input) const {
  return std::find(replaced_.begin(), replaced_.end(), input) != replaced_.end();
}

std::int64_t Adaptation::placed(std::int64_t axis) const {
  return place_[static_cast<std::size_t>(normalized_axis(axis, rank_))];
}

bool Adaptation::keeps_order(const Ints& moved_axes) const {
  std::int64_t last = -1;
  for (std::size_t d = 0; d < rank_; ++d) {
    const auto dimension = static_cast<std::int64_t>(d);
    if (std::find(moved_axes.begin(), moved_axes.end(), dimension) != moved_axes.end()) continue;
    if (perm_[d] < last) return false;
    last = perm_[d];
  }
  return true;
}

bool Adaptation::reorder(std::size_t input, std::size_t lists) {
  if (input >= inputs.size() || inputs[input] == kNoTensor) return true;
  const auto tensor = forms_.graph().tensor(inputs[input]);
  if (!tensor.is_constant() || !tensor.shape) return false;
  const auto count = static_cast<std::size_t>(elements(*tensor.shape));
  if (count == 0) return true;
  if (count != lists * rank_) return false;
  const auto unit = size_of(tensor.dtype);
  std::vector<std::byte> bytes(count * unit);
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = i / rank_ * rank_ + static_cast<std::size_t>(perm_[i % rank_]);
    std::memcpy(&bytes[i * unit], &tensor.data->bytes()[from * unit], unit);
  }
  auto moved = tensor;
  moved.data = TensorData::own(std::move(bytes));
  inputs[input] = forms_.graph().add_tensor(std::move(moved));
  replaced_.push_back(input);
  return true;
}

bool Adaptation::place_axes() {
  auto& graph = forms_.graph();
  const bool given = inputs.size() > 3 && inputs[3] != kNoTensor;
  Ints axes;
  if (given) {
    const auto constant = constant_ints(graph, inputs[3]);
    if (!constant) return false;
    axes = *constant;
  } else {
    const auto& starts = graph.tensor(inputs[1]).shape;
    if (!starts) return false;
    for (std::int64_t axis = 0; axis < elements(*starts); ++axis) axes.push_back(axis);
  }
  for (auto& axis : axes) axis = placed(axis);
  inputs.resize(std::max<std::size_t>(inputs.size(), 4), kNoTensor);
  inputs[3] = graph.add_ints("axes", axes);
  replaced_.push_back(3);
  return true;
}

bool move_follower(LayoutForms& forms, const Node& node) {
  if (node.inputs.empty()) return false;
  const auto follow = traits(node.op).follow;
  if (follow == nullptr) return false;
  const auto rank = image_rank(forms.graph(), node);
  if (rank < 3) return false;
  const auto cost = effort(forms, node, rank);
  if (!cost || cost->moved > cost->plain) return false;
  Adaptation adaptation(forms, node, rank);
  const auto op = follow(node.op, adaptation);
  if (!op) return false;
  if (!adaptation.plain_result && !results_can_move(forms.graph(), node, rank)) return false;

  Node moved{.name = node.name, .op = *op, .activation = node.activation};
  for (std::size_t i = 0; i < adaptation.inputs.size(); ++i) {
    const auto id = adaptation.inputs[i];
    if (i < data_inputs(node)) {
      moved.inputs.push_back(moved_operand(forms, id, rank));
    } else {
      moved.inputs.push_back(adaptation.is_replaced(i) ? id : forms.plain(id));
    }
  }
  for (const auto id : node.outputs) {
    if (adaptation.plain_result) forms.set_plain(id, id);
    moved.outputs.push_back(adaptation.plain_result ? id : forms.declare_moved(id));
  }
  forms.emit(std::move(moved));
  return true;
}

bool move_transpose(LayoutForms& forms, const Node& node) {
  const auto* op = std::get_if<Transpose>(&node.op);
  if (op == nullptr || node.activation) return false;
  const auto x = node.inputs.front();
  const auto y = node.outputs.front();
  const auto& before = forms.graph().tensor(x);
  const auto& after = forms.graph().tensor(y);
  if (!before.shape || !after.shape || before.shape->size() < 3) return false;
  const auto rank = before.shape->size();
  const auto perm = full_perm(*op, rank);
  if (before.dtype != after.dtype || transposed(before.quantization, perm) != after.quantization)
    return false;
  const auto order = forms.perm(rank);
  if (is_identity(composed(perm, order)) && forms.has_plain(x)) {
    forms.set_moved(y, forms.plain(x));
    return true;
  }
  if (!forms.has_moved(x)) return false;
  const auto shorter = composed(inverse(order), perm);
  if (is_identity(shorter)) {
    forms.set_plain(y, forms.moved(x));
    return true;
  }
  if (forms.has_plain(x)) return false;
  forms.emit(
      {.name = node.name, .op = Transpose{shorter}, .inputs = {forms.moved(x)}, .outputs = {y}});
  forms.set_plain(y, y);
  return true;
}

}  // namespace fleetfit::graph::rewrite
