#include <algorithm>
#include <utility>

#include "fleetfit/graph/operator_facts.h"
#include "graph/passes/all_passes.h"
#include "graph/passes/constants.h"
#include "graph/passes/layout_forms.h"

namespace fleetfit::graph::rewrite {
namespace {

std::size_t slot(TensorId id) { return static_cast<std::size_t>(id); }

std::string_view suffix(Layout layout) { return layout == Layout::nhwc ? "_nhwc" : "_nchw"; }

}  // namespace

LayoutForms::LayoutForms(Graph& graph, Layout wanted)
    : graph_(graph),
      wanted_(wanted),
      plain_(graph.tensors.size(), kNoTensor),
      moved_(graph.tensors.size(), kNoTensor) {
  for (const auto id : graph.inputs) set_plain(id, id);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].is_constant()) plain_[t] = static_cast<TensorId>(t);
  }
}

Ints LayoutForms::perm(std::size_t rank) const {
  const auto last = static_cast<std::int64_t>(rank) - 1;
  Ints result{0};
  if (wanted_ == Layout::nchw) result.push_back(last);
  for (std::int64_t d = 1; d < last; ++d) result.push_back(wanted_ == Layout::nhwc ? d + 1 : d);
  if (wanted_ == Layout::nhwc) result.push_back(1);
  return result;
}

TensorId LayoutForms::plain(TensorId id) {
  if (id == kNoTensor || has_plain(id)) return id == kNoTensor ? id : plain_[slot(id)];
  const auto rank = graph_.tensor(id).shape->size();
  emit({.name = graph_.tensor(id).name + "_transpose",
        .op = Transpose{inverse(perm(rank))},
        .inputs = {moved_[slot(id)]},
        .outputs = {id}});
  set_plain(id, id);
  return id;
}

TensorId LayoutForms::moved(TensorId id) {
  if (has_moved(id)) return moved_[slot(id)];
  const auto rank = graph_.tensor(id).shape->size();
  if (graph_.tensor(id).is_constant()) return moved_constant(id, rank);
  const auto source = plain(id);
  const auto result = declare_moved(id);
  emit({.name = graph_.tensor(result).name + "_transpose",
        .op = Transpose{perm(rank)},
        .inputs = {source},
        .outputs = {result}});
  return result;
}

TensorId LayoutForms::moved_constant(TensorId id, std::size_t rank) {
  if (elements(*graph_.tensor(id).shape) == 1) return id;
  auto& known = constants_.try_emplace({id, rank}, kNoTensor).first->second;
  if (known != kNoTensor) return known;
  auto tensor = graph_.tensor(id);
  const auto missing = rank - tensor.shape->size();
  tensor.shape->insert(tensor.shape->begin(), missing, 1);
  if (tensor.quantization && tensor.quantization->axis)
    *tensor.quantization->axis += static_cast<int>(missing);
  const auto order = perm(rank);
  tensor.name += suffix(wanted_);
  tensor.data = transposed(*tensor.data, tensor.dtype, *tensor.shape, order);
  tensor.shape = permuted(*tensor.shape, order);
  tensor.quantization = transposed(tensor.quantization, order);
  known = graph_.add_tensor(std::move(tensor));
  return known;
}

TensorId LayoutForms::declare_moved(TensorId id) {
  const auto& tensor = graph_.tensor(id);
  const auto order = perm(tensor.shape->size());
  const auto result = graph_.add_tensor({.name = tensor.name + std::string(suffix(wanted_)),
                                         .dtype = tensor.dtype,
                                         .shape = permuted(*tensor.shape, order),
                                         .quantization = transposed(tensor.quantization, order)});
  set_moved(id, result);
  return result;
}

void LayoutForms::emit(Node node) { nodes_.push_back(std::move(node)); }

void LayoutForms::emit_plain(Node node) {
  for (auto& id : node.inputs) id = plain(id);
  for (const auto id : node.outputs) {
    if (id != kNoTensor) set_plain(id, id);
  }
  emit(std::move(node));
}

bool LayoutForms::is_border(TensorId id) const {
  const auto among = [&](const std::vector<TensorId>& ids) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  return graph_.tensor(id).is_constant() || among(graph_.inputs) || among(graph_.outputs);
}

void LayoutForms::give_output(TensorId id) {
  const auto form = plain(id);
  if (form == id) return;
  if (is_border(form)) {
    emit({.name = graph_.tensor(id).name + "_copy",
          .op = Identity{},
          .inputs = {form},
          .outputs = {id}});
  } else {
    for (auto& node : nodes_) {
      std::replace(node.inputs.begin(), node.inputs.end(), form, id);
      std::replace(node.outputs.begin(), node.outputs.end(), form, id);
    }
    std::replace(plain_.begin(), plain_.end(), form, id);
    std::replace(moved_.begin(), moved_.end(), form, id);
  }
  set_plain(id, id);
}

void LayoutForms::finish() {
  for (const auto id : graph_.outputs) give_output(id);
  graph_.nodes = std::move(nodes_);
}
namespace {

bool in_other_layout(const Operator& op, Layout wanted) {
  return layout_of(op).value_or(wanted) != wanted;
}

Result<bool> convert(Graph& graph, Layout wanted) {
  const bool needed = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return in_other_layout(node.op, wanted);
  });
  if (!needed) return false;
  const auto nodes = std::exchange(graph.nodes, {});
  LayoutForms forms(graph, wanted);
  bool changed = false;
  for (const auto& node : nodes) {
    if (move_image_operator(forms, node) || move_batch_operator(forms, node)) {
      changed = true;
    } else if (!move_transpose(forms, node) && !move_follower(forms, node)) {
      forms.emit_plain(node);
    }
  }
  forms.finish();
  // What the forms leave: transposes that only move single elements before a reshape, constants
  // that are used in their moved form alone.
  for (const auto clean : {merge_moves, remove_identities, remove_dead_nodes}) {
    if (auto result = clean(graph); !result) return result;
  }
  return changed;
}

}  // namespace

Result<bool> layout_nchw(Graph& graph) { return convert(graph, Layout::nchw); }
Result<bool> layout_nhwc(Graph& graph) { return convert(graph, Layout::nhwc); }

}  // namespace fleetfit::graph::rewrite
