#include "cost/prepare.h"

#include <algorithm>
#include <utility>

#include "cost/convolution_shape.h"
#include "fleetfit/graph/links.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::cost {

using namespace graph;  // the operators

namespace {

// Layouts can be changed where channels are a multiple of this.
constexpr std::int64_t kAligned = 4;
constexpr std::size_t kImageRank = 4;
constexpr std::int64_t kChannelAxis = 1;

/// In which layouts the value of a tensor lies in memory.
struct Forms {
  bool plain = false;
  bool blocked = false;
};

/// How a kernel works.
struct Place {
  bool blocked = false;
  bool reads_plain = false;  ///< and makes blocks of it itself
};

class BlockedLayout {
 public:
  BlockedLayout(const Graph& graph, const BlockRules& rules, const std::vector<Kernel>& kernels)
      : graph_(graph),
        rules_(rules),
        links_(graph),
        runs_(graph.nodes.size(), false),
        forms_(graph.tensors.size()) {
    for (const auto& kernel : kernels)
      for (const int index : kernel.nodes) runs_[slot(index)] = true;
    for (const auto id : graph.inputs) forms_[slot(id)].plain = true;
  }

  void lay_out(Kernel& kernel) {
    const auto inputs = activations_of(kernel);
    const Place place = place_of(kernel, inputs);
    kernel.outside_blocks = !place.blocked;
    for (const TensorId id : inputs)
      kernel.reordered_size += bring(id, place.blocked && !place.reads_plain);
    for (const int index : kernel.nodes)
      for (const TensorId id : node(index).outputs)
        if (id != kNoTensor) forms_[slot(id)] = {.plain = !place.blocked, .blocked = place.blocked};
  }

 private:
  static std::size_t slot(int index) { return static_cast<std::size_t>(index); }
  const Node& node(int index) const { return links_.node(index); }

  /// What a tensor is another name of: nodes that are in no kernel only rename.
  TensorId origin(TensorId id) const {
    for (int made_by = links_.maker(id); made_by >= 0 && !runs_[slot(made_by)];
         made_by = links_.maker(id)) {
      const auto& inputs = node(made_by).inputs;
      if (inputs.empty() || inputs.front() == kNoTensor) break;
      id = inputs.front();
    }
    return id;
  }

  /// What other kernels made, or the network was given, and this one reads.
  std::vector<TensorId> activations_of(const Kernel& kernel) const {
    std::vector<TensorId> read;
    for (const int index : kernel.nodes) {
      for (const TensorId named : node(index).inputs) {
        if (named == kNoTensor || links_.is_static(named)) continue;
        const TensorId id = origin(named);
        const bool own = std::ranges::find(kernel.nodes, links_.maker(id)) != kernel.nodes.end();
        if (!own && std::ranges::find(read, id) == read.end()) read.push_back(id);
      }
    }
    return read;
  }

  std::int64_t image_size(TensorId id) const {
    const auto& shape = graph_.tensor(id).shape;
    return shape && shape->size() == kImageRank ? elements(*shape) : 0;
  }

  /// Elements that have to be moved for a tensor to lie in a layout.
  std::int64_t bring(TensorId id, bool into_blocks) {
    Forms& forms = forms_[slot(id)];
    return std::exchange(into_blocks ? forms.blocked : forms.plain, true) ? 0 : image_size(id);
  }

  bool is_blocked(TensorId id) const { return forms_[slot(id)].blocked; }

  bool has_whole_blocks(TensorId id) const {
    const auto& shape = graph_.tensor(id).shape;
    return shape && shape->size() == kImageRank && (*shape)[kChannelAxis] % rules_.channels == 0;
  }

  Place place_of(const Kernel& kernel, const std::vector<TensorId>& inputs) const {
    const Node& anchor = node(kernel.nodes.front());
    if (inputs.empty()) return {};
    if (std::holds_alternative<Conv>(anchor.op)) return place_of_convolution(anchor);
    if (std::holds_alternative<Pool>(anchor.op))
      return {.blocked = anchor.outputs.size() == 1 && has_whole_blocks(inputs.front())};
    return {.blocked = follows(kernel, inputs)};
  }

  Place place_of_convolution(const Node& conv) const {
    const auto shape = convolution_shape(graph_, conv);
    if (!shape || shape->groups < 1 || !has_constant_float_weights(conv)) return {};
    const auto& in = graph_.tensor(conv.inputs[0]).shape;
    if (!in || in->size() != kImageRank) return {};
    if (shape->groups > 1) return {.blocked = fits_in_groups(*shape)};
    if (shape->input_channels < rules_.channels) return {.blocked = true, .reads_plain = true};
    return {.blocked = shape->input_channels % kAligned == 0};
  }

  bool has_constant_float_weights(const Node& conv) const {
    const TensorId weights = conv.inputs[1];
    return links_.is_static(weights) && graph_.tensor(weights).dtype == DType::f32;
  }

  bool fits_in_groups(const ConvolutionShape& shape) const {
    if (shape.output_channels % kAligned != 0) return false;
    if (shape.input_channels == shape.groups && shape.output_channels == shape.groups) return true;
    return shape.input_channels / shape.groups % rules_.channels == 0 &&
           shape.output_channels / shape.groups % rules_.channels == 0;
  }

  /// Whether a kernel works on whatever lies in blocks already.
  bool follows(const Kernel& kernel, const std::vector<TensorId>& inputs) const {
    const auto known = [&](int index) {
      const Node& one = node(index);
      const bool by_constant =
          std::holds_alternative<Elementwise>(one.op) &&
          std::ranges::any_of(one.inputs, [&](TensorId id) { return links_.is_static(id); });
      return !by_constant && rules_.follow.contains(std::string(type_name(one.op)));
    };
    if (!std::ranges::all_of(kernel.nodes, known)) return false;
    if (!std::ranges::all_of(inputs, [&](TensorId id) { return is_blocked(id); })) return false;
    const Node& anchor = node(kernel.nodes.front());
    if (const auto* concat = std::get_if<Concat>(&anchor.op)) {
      return concat->axis == kChannelAxis &&
             std::ranges::all_of(inputs, [&](TensorId id) { return has_whole_blocks(id); });
    }
    if (std::holds_alternative<GlobalPool>(anchor.op)) return has_whole_blocks(inputs.front());
    const auto& shape = graph_.tensor(inputs.front()).shape;
    return std::ranges::all_of(inputs,
                               [&](TensorId id) { return graph_.tensor(id).shape == shape; });
  }

  const Graph& graph_;
  const BlockRules& rules_;
  Links links_;
  std::vector<bool> runs_;  // of each node: whether it is in a kernel
  std::vector<Forms> forms_;
};

}  // namespace

void lay_out_blocks(const Graph& graph, const BlockRules& rules, std::vector<Kernel>& kernels) {
  if (rules.channels == 0 || is_quantized(graph)) return;
  BlockedLayout layout(graph, rules, kernels);
  for (auto& kernel : kernels) layout.lay_out(kernel);
}

}  // namespace fleetfit::cost
