#include "fleetfit/graph/reindex.h"

#include <fmt/format.h>

#include <cstring>

#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::graph {
namespace {

/// The bytes of a constant with other positions along one axis.
std::vector<std::byte> gather(std::span<const std::byte> bytes, const Shape& shape,
                              std::size_t axis, const std::vector<int>& positions,
                              std::size_t element_bytes) {
  std::size_t outer = 1;
  std::size_t inner = element_bytes;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    if (a < axis) outer *= static_cast<std::size_t>(shape[a]);
    if (a > axis) inner *= static_cast<std::size_t>(shape[a]);
  }
  const auto extent = static_cast<std::size_t>(shape[axis]);
  std::vector<std::byte> gathered(outer * positions.size() * inner);
  std::byte* to = gathered.data();
  for (std::size_t o = 0; o < outer; ++o) {
    for (const int position : positions) {
      const auto from = (o * extent + static_cast<std::size_t>(position)) * inner;
      std::memcpy(to, bytes.data() + from, inner);
      to += inner;
    }
  }
  return gathered;
}

class Reindexer {
 public:
  Reindexer(const Graph& graph, const Positions& positions)
      : old_(graph), positions_(positions), new_(graph) {}

  Result<Graph> run() {
    for (const auto& [place, positions] : positions_) change_tensor(place, positions);
    for (auto& node : new_.nodes) {
      if (auto ok = follow(node); !ok) return core::within(describe(node), ok.error());
    }
    FLEETFIT_TRY(infer_shapes(new_));
    FLEETFIT_TRY(validate(new_));
    return std::move(new_);
  }

 private:
  void change_tensor(const TensorAxis& place, const std::vector<int>& positions) {
    auto& tensor = new_.tensor(place.first);
    if (tensor.data) {
      tensor.data = TensorData::own(gather(tensor.data->bytes(), *tensor.shape, place.second,
                                           positions, size_of(tensor.dtype)));
    }
    (*tensor.shape)[place.second] = static_cast<std::int64_t>(positions.size());
  }

  bool changed(TensorId id) const {
    return id != kNoTensor && old_.tensor(id).shape != new_.tensor(id).shape;
  }
  std::int64_t new_extent(TensorId id, std::size_t axis) const {
    return (*new_.tensor(id).shape)[axis];
  }

  Status follow(Node& node) {
    if (auto* conv = std::get_if<Conv>(&node.op)) return follow_groups(node, *conv);
    if (std::holds_alternative<Reshape>(node.op)) return follow_shape(node);
    if (const auto* split = std::get_if<Split>(&node.op)) return follow_sizes(node, *split);
    return {};
  }

  Status follow_groups(const Node& node, Conv& conv) {
    if (conv.groups == 1) return {};
    const auto& shape = *new_.tensor(node.inputs[0]).shape;
    const auto& weights = *new_.tensor(node.inputs[1]).shape;
    const bool nchw = conv.layout == Layout::nchw;
    const std::size_t weight_in = nchw ? 1 : weights.size() - 1;
    if ((*old_.tensor(node.inputs[1]).shape)[weight_in] != weights[weight_in]) return {};
    conv.groups = shape[nchw ? 1 : shape.size() - 1] / weights[weight_in];
    return {};
  }

  Status follow_shape(Node& node) {
    if (!changed(node.outputs[0])) return {};
    auto wanted = constant_ints(old_, node.inputs[1]);
    if (!wanted) return fail(ErrorCode::unsupported, "its shape is computed");
    const auto& before = *old_.tensor(node.outputs[0]).shape;
    for (std::size_t a = 0; a < wanted->size(); ++a) {
      if ((*wanted)[a] > 0 && (*wanted)[a] == before[a])
        (*wanted)[a] = new_extent(node.outputs[0], a);
    }
    node.inputs[1] = new_.add_ints(node.name + ".shape", *wanted);
    return {};
  }

  Status follow_sizes(Node& node, const Split& split) {
    if (node.inputs.size() < 2 || node.inputs[1] == kNoTensor || !changed(node.inputs[0]))
      return {};
    const auto rank = static_cast<std::int64_t>(old_.tensor(node.inputs[0]).shape->size());
    const auto axis = static_cast<std::size_t>(split.axis < 0 ? split.axis + rank : split.axis);
    Ints sizes;
    for (const auto id : node.outputs) sizes.push_back(new_extent(id, axis));
    node.inputs[1] = new_.add_ints(node.name + ".sizes", sizes);
    return {};
  }

  const Graph& old_;
  const Positions& positions_;
  Graph new_;
};

}  // namespace

Result<Graph> reindexed(const Graph& graph, const Positions& positions) {
  return Reindexer(graph, positions).run();
}

}  // namespace fleetfit::graph
