#include "cost/kernel_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "cost/convolution_shape.h"
#include "fleetfit/graph/operator_facts.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::cost {

using namespace graph;  // the operators

namespace {

ImageExtents image_extents(const Shape& shape, Layout layout) {
  const auto extent = [&](std::size_t axis) { return static_cast<double>(shape[axis]); };
  switch (shape.size()) {
    case 0:
      return {};
    case 1:
      return {.channels = extent(0)};
    case 2:
      return {.batch = extent(0), .channels = extent(1)};
    case 3:
      return {.batch = extent(0), .height = extent(1), .channels = extent(2)};
    default:
      break;
  }
  const auto spatial = spatial_extents(shape, layout);
  ImageExtents extents{.batch = extent(0),
                       .width = static_cast<double>(spatial.back()),
                       .channels = extent(channel_axis(shape, layout))};
  for (std::size_t d = 0; d + 1 < spatial.size(); ++d)
    extents.height *= static_cast<double>(spatial[d]);
  return extents;
}

bool only_moves(std::string_view kind) {
  static constexpr std::array<std::string_view, 6> kMoves{"concat",  "split",  "transpose",
                                                          "reshape", "gather", "padding"};
  return std::ranges::find(kMoves, kind) != kMoves.end();
}

Layout layout_of(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (const auto* conv = std::get_if<Conv>(&node.op)) return conv->layout;
    if (const auto* pool = std::get_if<Pool>(&node.op)) return pool->layout;
    if (const auto* pool = std::get_if<GlobalPool>(&node.op)) return pool->layout;
  }
  return Layout::nchw;
}

}  // namespace

Result<KernelMeter> KernelMeter::of(const Graph& graph) {
  FLEETFIT_ASSIGN(auto cost, count_cost(graph));
  return KernelMeter(graph, layout_of(graph), std::move(cost.nodes));
}

/// One kernel while it is measured.
class KernelMeasurement {
 public:
  KernelMeasurement(const KernelMeter& meter, const Kernel& kernel)
      : meter_(meter), links_(meter.links_), graph_(links_.graph()), kernel_(kernel) {}

  Result<KernelMeasures> run() {
    FLEETFIT_TRY(check());
    members_ = {kernel_.nodes.begin(), kernel_.nodes.end()};
    find_upstream(kernel_.nodes.front());
    measure_inputs();
    measure_outputs();
    measure_weights();
    measure_fused();
    measure_shape();
    measure_work();
    measures_.outside_blocks = kernel_.outside_blocks;
    measures_.reordered_size = static_cast<double>(kernel_.reordered_size);
    return measures_;
  }

 private:
  const Node& node(int index) const { return links_.node(index); }
  const Node& anchor() const { return node(kernel_.nodes.front()); }
  double count(TensorId id) const {
    return static_cast<double>(elements(*graph_.tensor(id).shape));
  }
  double bytes(TensorId id) const {
    return count(id) * static_cast<double>(size_of(graph_.tensor(id).dtype));
  }

  Status check() const {
    if (kernel_.nodes.empty()) return fail(ErrorCode::invalid_input, "a kernel without nodes");
    for (const int index : kernel_.nodes) {
      if (index < 0 || index >= std::ssize(graph_.nodes)) {
        return fail(ErrorCode::invalid_input,
                    fmt::format("a kernel has node {}; the network has {} nodes", index,
                                graph_.nodes.size()));
      }
      const auto known = [&](TensorId id) {
        return id == kNoTensor || graph_.tensor(id).shape.has_value();
      };
      if (!std::ranges::all_of(node(index).inputs, known) ||
          !std::ranges::all_of(node(index).outputs, known)) {
        return fail(ErrorCode::invalid_input,
                    fmt::format("{} has a shape that cannot be told before it runs, so it has no "
                                "features",
                                describe(node(index))));
      }
    }
    return {};
  }

  /// The operator that unpacked a tensor from 8 bits; null for another tensor.
  const Node* unpacking(TensorId id) const {
    const int made_by = links_.maker(id);
    if (made_by < 0 || !std::holds_alternative<DequantizeLinear>(node(made_by).op)) return nullptr;
    return &node(made_by);
  }

  /// The nodes of the kernel that work before the anchor.
  void find_upstream(int index) {
    if (!upstream_.insert(index).second) return;
    for (const TensorId id : node(index).inputs) {
      if (members_.contains(links_.maker(id))) find_upstream(links_.maker(id));
    }
  }

  /// A tensor that is unpacked from 8 bits for several kernels is read packed by each of them.
  TensorId as_stored(TensorId id) const {
    const Node* by = computes_packed() ? unpacking(id) : nullptr;
    return by == nullptr ? id : by->inputs[0];
  }

  bool computes_packed() const {
    return kernel_.nodes.size() > 1 && std::ranges::any_of(kernel_.nodes, [&](int index) {
             return std::holds_alternative<QuantizeLinear>(node(index).op) ||
                    std::holds_alternative<DequantizeLinear>(node(index).op);
           });
  }

  void measure_inputs() {
    std::set<TensorId> seen;
    for (const int index : kernel_.nodes) {
      for (const TensorId id : node(index).inputs) {
        if (id == kNoTensor || links_.is_static(id) || members_.contains(links_.maker(id)))
          continue;
        if (!seen.insert(as_stored(id)).second) continue;
        measures_.input_size += count(id);
        measures_.input_bytes += bytes(as_stored(id));
        measures_.operands += 1;
        if (!upstream_.contains(index)) measures_.fused_operand_bytes += bytes(as_stored(id));
      }
    }
  }

  bool leaves(TensorId id) const {
    return links_.is_output(id) || std::ranges::any_of(links_.readers(id), [&](int reader) {
             return !members_.contains(reader);
           });
  }

  void measure_outputs() {
    for (const int index : kernel_.nodes) {
      for (const TensorId id : node(index).outputs) {
        if (id == kNoTensor || !leaves(id)) continue;
        measures_.output_size += count(id);
        measures_.output_bytes += bytes(id);
        measures_.results += 1;
        const auto width = static_cast<double>(size_of(graph_.tensor(id).dtype));
        measures_.element_bytes = std::max(measures_.element_bytes, width);
      }
    }
  }

  void measure_weights() {
    for (const TensorId id : std::set(anchor().inputs.begin(), anchor().inputs.end())) {
      if (!links_.is_static(id) || !holds_weights(id)) continue;
      const Node* by = unpacking(id);
      measures_.weight_size += count(id);
      measures_.weight_bytes += bytes(by == nullptr ? id : by->inputs[0]);
    }
  }

  /// Shapes, axes and pads are no weights.
  bool holds_weights(TensorId id) const {
    const Tensor& tensor = graph_.tensor(id);
    return is_float(tensor.dtype) || tensor.quantization.has_value();
  }

  void measure_fused() {
    for (const int index : kernel_.nodes) {
      const double results = count(node(index).outputs[0]);
      if (index != kernel_.nodes.front()) measures_.fused_size += results;
      const Price price = price_of(node(index));
      if (price == Price::cheap) measures_.cheap_activation_size += results;
      if (price == Price::costly) measures_.costly_activation_size += results;
    }
  }

  /// The largest activation that the anchor reads; its result if there is none.
  TensorId main_input() const {
    TensorId best = kNoTensor;
    for (const TensorId id : anchor().inputs) {
      if (id == kNoTensor || links_.is_static(id)) continue;
      if (best == kNoTensor || count(id) > count(best)) best = id;
    }
    return best == kNoTensor ? anchor().outputs[0] : best;
  }

  bool is_shifted(TensorId id) const {
    if (const auto& quantization = graph_.tensor(id).quantization)
      return std::ranges::any_of(quantization->zero_points, [](auto zero) { return zero != 0; });
    const Node* by = unpacking(id);
    if (by == nullptr || by->inputs.size() <= 2 || by->inputs[2] == kNoTensor) return false;
    const auto& zero = graph_.tensor(by->inputs[2]).data;
    return zero && std::ranges::any_of(zero->bytes(), [](std::byte b) { return b != std::byte{}; });
  }

  void measure_shape() {
    const auto extents = [&](TensorId id) {
      return image_extents(*graph_.tensor(id).shape, meter_.layout_);
    };
    measures_.in = extents(main_input());
    measures_.out = extents(anchor().outputs[0]);
    measures_.shifted = is_shifted(main_input());
    if (const auto shape = convolution_shape(graph_, anchor())) {
      measures_.groups = static_cast<double>(shape->groups);
      measures_.window = {static_cast<double>(shape->kernel_height),
                          static_cast<double>(shape->kernel_width),
                          static_cast<double>(shape->stride), static_cast<double>(shape->dilation)};
    } else if (const auto* pool = std::get_if<Pool>(&anchor().op)) {
      measures_.window = window_of(pool->window);
      measures_.averages = pool->kind == PoolKind::average;
    } else if (kernel_.kind == "mean" || kernel_.kind == "reduce") {
      measures_.window = {.height = measures_.in.height / std::max(1.0, measures_.out.height),
                          .width = measures_.in.width / std::max(1.0, measures_.out.width)};
    }
  }

  static WindowExtents window_of(const Window& window) {
    WindowExtents extents;
    for (std::size_t d = 0; d + 1 < window.kernel.size(); ++d)
      extents.height *= static_cast<double>(window.kernel[d]);
    if (!window.kernel.empty()) extents.width = static_cast<double>(window.kernel.back());
    for (const auto stride : window.strides)
      extents.stride = std::max(extents.stride, static_cast<double>(stride));
    for (const auto dilation : window.dilations)
      extents.dilation = std::max(extents.dilation, static_cast<double>(dilation));
    return extents;
  }

  void measure_work() {
    const auto& cost = meter_.costs_[static_cast<std::size_t>(kernel_.nodes.front())];
    const double products = cost ? static_cast<double>(cost->flops) / 2 : 0;
    measures_.flops = 2 * products;
    if (products > 0) {
      measures_.depth = products / std::max(1.0, count(anchor().outputs[0]));
    } else if (kernel_.kind == "pooling") {
      measures_.flops = measures_.output_size * measures_.window.height * measures_.window.width;
    } else if (!only_moves(kernel_.kind)) {
      measures_.flops = std::max(measures_.input_size, measures_.output_size);
    }
  }

  const KernelMeter& meter_;
  const Links& links_;
  const Graph& graph_;
  const Kernel& kernel_;
  std::set<int> members_;
  std::set<int> upstream_;
  KernelMeasures measures_;
};

Result<KernelMeasures> KernelMeter::measure(const Kernel& kernel) const {
  return KernelMeasurement(*this, kernel).run();
}

}  // namespace fleetfit::cost
