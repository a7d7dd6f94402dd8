#include "engine/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/fuse.h"
#include "engine/libraries.h"
#include "fleetfit/graph/operator_facts.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/quantize.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::engine {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::Node;
using graph::Overloaded;
using graph::Shape;
using graph::TensorId;

constexpr std::int64_t kBlock = 16;

bool is_float_image(const graph::Tensor& tensor) {
  return tensor.dtype == graph::DType::f32 && tensor.shape->size() == 4;
}

/// One value for each channel, or one for all: what can be combined with a blocked image.
bool is_per_channel(const Shape& shape, std::int64_t channels) {
  return shape.size() == 4 && shape[1] == channels && shape[2] == 1 && shape[3] == 1;
}

/// Walks the graph in order, gives every tensor a format and puts reorders between steps that
/// disagree.
class Planner {
 public:
  Planner(const Graph& graph, ImageLayout layout, int threads)
      : graph_(graph), layout_(layout), threads_(threads), planned_(graph.tensors.size(), -1) {}

  Plan plan(const std::vector<FusedNode>& nodes) {
    for (const TensorId id : graph_.inputs) plan_.inputs.push_back(add_tensor(id, Format::plain));
    for (const int input : plan_.inputs) tensor(input).pinned = true;
    for (const FusedNode& fused : nodes) add(fused);
    for (const TensorId id : graph_.outputs) plan_.outputs.push_back(in_format(id, Format::plain));
    for (const int output : plan_.outputs) tensor(output).pinned = true;
    return std::move(plan_);
  }

 private:
  PlannedTensor& tensor(int index) { return plan_.tensors[static_cast<std::size_t>(index)]; }
  const graph::Tensor& source(TensorId id) const { return graph_.tensor(id); }
  Format format_of(TensorId id) const {
    const int index = planned_[static_cast<std::size_t>(id)];
    return index < 0 ? Format::plain
                     : plan_.tensors[static_cast<std::size_t>(index)].operand.format;
  }

  Operand operand(TensorId id, Format format) const {
    if (id == kNoTensor) return {.present = false};
    const graph::Tensor& from = source(id);
    return {.dtype = from.dtype,
            .shape = *from.shape,
            .format = format,
            .quantization = from.quantization,
            .constant = from.data};
  }

  int add_tensor(TensorId id, Format format) {
    plan_.tensors.push_back({.operand = operand(id, format)});
    const int index = static_cast<int>(plan_.tensors.size()) - 1;
    planned_[static_cast<std::size_t>(id)] = index;
    return index;
  }

  /// The tensor in this format; a step that brings it there is added where it has another.
  int in_format(TensorId id, Format format) {
    if (id == kNoTensor) return -1;
    int index = planned_[static_cast<std::size_t>(id)];
    if (index < 0) index = add_tensor(id, Format::plain);  // a constant at its first use
    if (tensor(index).operand.format == format) return index;
    const auto [known, is_new] = reordered_.try_emplace({index, format}, 0);
    if (!is_new) return known->second;
    const Operand& from = tensor(index).operand;
    const Operand to{.dtype = from.dtype,
                     .shape = from.shape,
                     .format = format,
                     .quantization = from.quantization};
    plan_.tensors.push_back({.operand = to});
    const int result = static_cast<int>(plan_.tensors.size()) - 1;
    known->second = result;
    Node node{.name = "reorder " + source(id).name, .op = graph::Identity{}};
    plan_.steps.push_back({.task = {.node = node,
                                    .inputs = {tensor(index).operand},
                                    .outputs = {to},
                                    .threads = threads_},
                           .inputs = {index},
                           .outputs = {result},
                           .name = node.name});
    return result;
  }

  /// The format that a node takes its first input in, and gives its output in.
  struct Formats {
    Format input = Format::plain;
    Format output = Format::plain;
  };

  Formats formats(const FusedNode& fused) const {
    const Node& node = fused.node;
    if (layout_ == ImageLayout::channels_last || node.outputs.empty() ||
        !is_float_image(source(node.outputs[0])) || node.inputs.empty() ||
        node.inputs[0] == kNoTensor || !is_float_image(source(node.inputs[0]))) {
      return {};
    }
    const Formats kept{format_of(node.inputs[0]), format_of(node.inputs[0])};
    constexpr Formats kBlocked{Format::blocked, Format::blocked};
    return std::visit(Overloaded{
                          [&](const graph::Conv& conv) { return conv_formats(conv, node); },
                          [&](const graph::Pool&) { return kept; },
                          [&](const graph::GlobalPool&) { return kept; },
                          [&](const graph::Activate&) { return kept; },
                          [&](const graph::Elementwise& op) {
                            return stays_blocked(op, node) ? kBlocked : Formats{};
                          },
                          [&](const graph::Concat& concat) {
                            return concat.axis == 1 && joins_blocks(node) ? kBlocked : Formats{};
                          },
                          [](const auto&) { return Formats{}; },
                      },
                      node.op);
  }

  Formats conv_formats(const graph::Conv& conv, const Node& node) const {
    const std::int64_t in = (*source(node.inputs[0]).shape)[1];
    const std::int64_t out = (*source(node.outputs[0]).shape)[1];
    if (!source(node.inputs[1]).is_constant()) return {};
    if (conv.groups == 1) {
      // The first layer of a network reads three plain channels faster than sixteen padded ones.
      const bool reads_plain = in < kBlock && format_of(node.inputs[0]) == Format::plain;
      return {reads_plain ? Format::plain : Format::blocked, Format::blocked};
    }
    const bool depthwise = conv.groups == in && in == out;
    const bool whole_blocks = in / conv.groups % kBlock == 0 && out / conv.groups % kBlock == 0;
    return depthwise || whole_blocks ? Formats{Format::blocked, Format::blocked} : Formats{};
  }

  bool stays_blocked(const graph::Elementwise& op, const Node& node) const {
    using Kind = graph::ElementwiseKind;
    constexpr std::array kBinary{Kind::add, Kind::sub, Kind::mul, Kind::div, Kind::min, Kind::max};
    if (std::ranges::find(kBinary, op.kind) == kBinary.end() || node.inputs.size() != 2)
      return false;
    const Shape& out = *source(node.outputs[0]).shape;
    bool any_blocked = false;
    for (const TensorId id : node.inputs) {
      const Shape& shape = *source(id).shape;
      if (source(id).is_constant()) return false;
      if (shape != out && !is_per_channel(shape, out[1])) return false;
      any_blocked = any_blocked || format_of(id) == Format::blocked;
    }
    return any_blocked && *source(node.inputs[0]).shape == out;
  }

  bool joins_blocks(const Node& node) const {
    return std::ranges::all_of(node.inputs, [&](TensorId id) {
      return format_of(id) == Format::blocked && (*source(id).shape)[1] % kBlock == 0;
    });
  }

  void add(const FusedNode& fused) {
    const Node& node = fused.node;
    if (std::holds_alternative<graph::Constant>(node.op)) return;
    if (graph::only_reshapes(node.op) && !node.activation && rename(node)) return;
    if (fused.adds_last_input && !adds_in_place(fused)) {
      for (const Node& part : fused.apart) add({part, part.name});
      return;
    }
    const Formats wanted = formats(fused);
    PlannedStep step{
        .task = {.node = node, .adds_last_input = fused.adds_last_input, .threads = threads_},
        .name = fused.name};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_added = fused.adds_last_input && i + 1 == node.inputs.size();
      step.inputs.push_back(in_format(
          node.inputs[i], is_added ? wanted.output : input_format(fused, i, wanted.input)));
      step.task.inputs.push_back(step.inputs.back() < 0 ? Operand{.present = false}
                                                        : tensor(step.inputs.back()).operand);
    }
    for (const TensorId id : node.outputs) {
      step.outputs.push_back(id == kNoTensor ? -1 : add_tensor(id, wanted.output));
      step.task.outputs.push_back(operand(id, wanted.output));
      step.task.outputs.back().constant.reset();
    }
    if (wanted.output == Format::blocked && joined_in_place(step)) return;
    plan_.steps.push_back(std::move(step));
  }

  bool adds_in_place(const FusedNode& fused) const {
    const Formats wanted = formats(fused);
    Task task{.node = fused.node, .adds_last_input = true, .threads = threads_};
    for (std::size_t i = 0; i < fused.node.inputs.size(); ++i) {
      const bool is_added = i + 1 == fused.node.inputs.size();
      task.inputs.push_back(operand(
          fused.node.inputs[i], is_added ? wanted.output : input_format(fused, i, wanted.input)));
    }
    task.outputs.push_back(operand(fused.node.outputs[0], wanted.output));
    return onednn_can(task);
  }

  /// Images come in the format that the node wants, weights and the like are plain.
  Format input_format(const FusedNode& fused, std::size_t input, Format of_images) const {
    const TensorId id = fused.node.inputs[input];
    if (id == kNoTensor || source(id).is_constant()) return Format::plain;
    const bool is_image = std::holds_alternative<graph::Conv>(fused.node.op)
                              ? input == 0
                              : source(id).shape->size() == 4;
    return is_image ? of_images : Format::plain;
  }

  /// Lets the output share the input's memory where only the shape differs.
  bool rename(const Node& node) {
    const TensorId from = node.inputs[0];
    const TensorId to = node.outputs[0];
    if (node.outputs.size() > 1 || source(from).is_constant() ||
        source(from).dtype != source(to).dtype) {
      return false;
    }
    const int input = in_format(from, renamed_as_plain(from) ? format_of(from) : Format::plain);
    const int output = add_tensor(to, Format::plain);
    tensor(output).inside = Place{input, 0};
    return true;
  }

  /// A blocked image of one pixel whose blocks are full lies as a plain one.
  bool renamed_as_plain(TensorId id) const {
    const Shape& shape = *source(id).shape;
    return format_of(id) == Format::blocked && is_per_channel(shape, shape[1]) &&
           shape[1] % kBlock == 0;
  }

  /// Inputs of a blocked concatenation of one image can be written where they are to be, and
  /// nothing is left to do.
  bool joined_in_place(const PlannedStep& step) {
    if (!std::holds_alternative<graph::Concat>(step.task.node.op) || step.task.node.activation ||
        step.task.outputs[0].shape[0] != 1) {
      return false;
    }
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (!is_free(step.inputs[i], step.task.node.inputs[i]) ||
          std::ranges::count(step.inputs, step.inputs[i]) != 1) {
        return false;
      }
    }
    std::size_t offset = 0;
    for (const int input : step.inputs) {
      tensor(input).inside = Place{step.outputs[0], offset};
      offset += storage_bytes(tensor(input).operand);
    }
    return true;
  }

  /// Whether a tensor may lie anywhere.
  bool is_free(int index, TensorId id) {
    const PlannedTensor& planned = tensor(index);
    return !planned.inside && !planned.pinned && !planned.operand.constant && !is_output(id) &&
           !holds_others(index);
  }

  bool holds_others(int index) const {
    return std::ranges::any_of(plan_.tensors, [&](const PlannedTensor& other) {
      return other.inside && other.inside->tensor == index;
    });
  }

  bool is_output(TensorId id) const {
    return std::ranges::find(graph_.outputs, id) != graph_.outputs.end();
  }

  const Graph& graph_;
  ImageLayout layout_;
  int threads_;
  Plan plan_;
  std::vector<int> planned_;  // of each tensor of the graph: its planned one, -1 if not there yet
  std::map<std::pair<int, Format>, int> reordered_;
};

}  // namespace

Result<Graph> simplify_for_engine(const Graph& graph) {
  Graph simplified = graph;
  FLEETFIT_TRY(infer_shapes(simplified));
  FLEETFIT_TRY(simplify(simplified));
  if (auto status = to_quantized_tensors(simplified, {.merge_activations = true}); !status) {
    return tl::unexpected(status.error());
  }
  FLEETFIT_TRY(simplify(simplified));
  return simplified;
}

Result<Plan> make_plan(const Graph& simplified, ImageLayout layout, Fusing fusing, int threads) {
  Graph laid_out = simplified;
  const auto wanted =
      layout == ImageLayout::channels_last ? graph::Layout::nhwc : graph::Layout::nchw;
  FLEETFIT_TRY(convert_layout(laid_out, wanted));
  return Planner(laid_out, layout, threads).plan(fuse_nodes(laid_out, fusing));
}

bool has_float_convolution(const Graph& simplified) {
  return std::ranges::any_of(simplified.nodes, [&](const Node& node) {
    return std::holds_alternative<graph::Conv>(node.op) &&
           simplified.tensor(node.outputs[0]).dtype == graph::DType::f32;
  });
}

}  // namespace fleetfit::engine
