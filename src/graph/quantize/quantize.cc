#include "fleetfit/graph/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fleetfit/graph/shape_inference.h"
#include "graph/passes/all_passes.h"
#include "graph/passes/constants.h"
#include "graph/quantize/plan.h"

namespace fleetfit::graph {
namespace {

using namespace quantization;

ValueRange joined(const ValueRange& a, const ValueRange& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

ValueRange within_bounds(const ValueRange& range, const Activation& activation) {
  if (activation.kind == ActivationKind::relu)
    return {std::max(range.low, 0.0F), std::max(range.high, 0.0F)};
  if (activation.kind == ActivationKind::clip && activation.alpha <= activation.beta) {
    return {std::clamp(range.low, activation.alpha, activation.beta),
            std::clamp(range.high, activation.alpha, activation.beta)};
  }
  return range;
}

Activation activation_of(const Node& node) {
  const auto* activate = std::get_if<Activate>(&node.op);
  return activate != nullptr && !node.activation ? activate->function : node.activation;
}

Status check(const ValueRange& range, const Tensor& tensor) {
  const bool finite = std::isfinite(range.low) && std::isfinite(range.high);
  if (finite && range.low <= range.high) return {};
  return refuse(fmt::format("tensor '{}' cannot be quantized to the range from {} to {}",
                            tensor.name, range.low, range.high));
}

/// The values of a constant, all finite.
Result<std::vector<float>> finite_values(const Graph& graph, TensorId id) {
  auto values = rewrite::float_values(graph, id);
  const bool finite = values && std::all_of(values->begin(), values->end(),
                                            [](float value) { return std::isfinite(value); });
  if (finite) return *std::move(values);
  return refuse(fmt::format("constant '{}' holds a NaN or an infinity and cannot be quantized",
                            graph.tensor(id).name));
}

/// The dimension of a layer's weights that counts its outputs; nothing for stacks of matrices,
/// which no runtime takes with several scales.
std::optional<std::size_t> output_axis(const Node& node, const Shape& weights) {
  if (const auto* op = std::get_if<ConvTranspose>(&node.op))
    return op->layout == Layout::nchw ? 1 : 0;
  if (const auto* op = std::get_if<Gemm>(&node.op)) return op->trans_b ? 0 : 1;
  if (const auto* op = std::get_if<MatMul>(&node.op)) {
    if (weights.size() != 2) return std::nullopt;
    return op->trans_b ? 0 : 1;
  }
  return 0;
}

/// The range of each group of tensors that have one scale.
Result<std::map<TensorId, ValueRange>> ranges_of_groups(const Graph& graph, const Plan& plan,
                                                        const Ranges& ranges) {
  std::map<TensorId, ValueRange> widest;
  const auto widen = [&](TensorId id, const ValueRange& range) {
    auto& known = widest[plan.group(id)];
    known = joined(known, range);
  };
  const auto made_by = producers(graph);
  for (const auto id : plan.sources()) {
    const auto& tensor = graph.tensor(id);
    const auto found = ranges.find(id);
    if (found == ranges.end())
      return refuse(fmt::format("the range of tensor '{}' is not known", tensor.name));
    FLEETFIT_TRY(check(found->second, tensor));
    auto range = found->second;
    if (const int maker = made_by[static_cast<std::size_t>(id)]; maker >= 0)
      range = within_bounds(range, activation_of(graph.nodes[static_cast<std::size_t>(maker)]));
    widen(id, range);
  }
  for (const auto id : plan.constants()) {
    FLEETFIT_ASSIGN(const auto values, finite_values(graph, id));
    if (values.empty()) continue;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    widen(id, {*low, *high});
  }
  return widest;
}

/// ONNX has no transposed operand in MatMul.
void untranspose(Graph& graph, Node& node) {
  auto* op = std::get_if<MatMul>(&node.op);
  if (op == nullptr || !op->trans_b) return;
  const auto weights = graph.tensor(node.inputs[1]);
  Ints perm(weights.shape->size());
  for (std::size_t d = 0; d < perm.size(); ++d) perm[d] = static_cast<std::int64_t>(d);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  node.inputs[1] = graph.add_tensor(
      {.name = weights.name,
       .dtype = DType::f32,
       .shape = rewrite::permuted(*weights.shape, perm),
       .data = rewrite::transposed(*weights.data, DType::f32, *weights.shape, perm)});
  op->trans_b = false;
}

/// The numbers of a layer as they are stored.
struct StoredLayer {
  LayerScales scales;
  TensorData weights;
  std::optional<TensorData> bias;
};

bool has_bias(const Node& node) { return node.inputs.size() > 2 && node.inputs[2] != kNoTensor; }

Result<StoredLayer> stored_layer(const Graph& graph, const Node& node, const ChannelView& view,
                                 float input_scale) {
  FLEETFIT_ASSIGN(const auto weights, finite_values(graph, node.inputs[1]));
  FLEETFIT_ASSIGN(const auto bias,
                  has_bias(node) ? finite_values(graph, node.inputs[2]) : std::vector<float>{});
  auto scales = layer_scales(weights, view, bias, input_scale);
  StoredLayer layer{.weights = TensorData::copy(to_int8(weights, view, scales.weights))};
  if (has_bias(node)) layer.bias = TensorData::copy(to_int32(bias, scales.bias));
  layer.scales = std::move(scales);
  return layer;
}

StoredLayer layer_of_zeros(const Graph& graph, const Node& node, const ChannelView& view) {
  const auto zeros = [](DType dtype, std::size_t count) {
    return TensorData::generate({.dtype = dtype, .count = count});
  };
  const auto count = [&](TensorId id) {
    return static_cast<std::size_t>(elements(*graph.tensor(id).shape));
  };
  StoredLayer layer{.weights = zeros(DType::i8, count(node.inputs[1]))};
  layer.scales.weights.assign(view.channels, 1.0F);
  if (!has_bias(node)) return layer;
  layer.bias = zeros(DType::i32, count(node.inputs[2]));
  layer.scales.bias.assign(count(node.inputs[2]), 1.0F);
  return layer;
}

/// Writes the quantized network, node by node.
class Quantizer {
 public:
  Quantizer(Graph source, Plan plan, const QuantizeOptions& options)
      : graph_(std::move(source)),
        plan_(std::move(plan)),
        per_channel_(options.per_channel),
        only_costs_(options.only_costs) {}

  Result<Graph> run(const Ranges& ranges) {
    FLEETFIT_ASSIGN(const auto widest, ranges_of_groups(graph_, plan_, ranges));
    for (const auto& [group, range] : widest) groups_[group].scale = activation_scale(range);
    auto nodes = std::exchange(graph_.nodes, {});
    real_.resize(graph_.tensors.size(), kNoTensor);
    // A layer gets three conversions, with up to four tensors each.
    graph_.nodes.reserve(4 * nodes.size());
    graph_.tensors.reserve(graph_.tensors.size() + 12 * nodes.size());
    for (const auto id : graph_.inputs) round_trip(id);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      FLEETFIT_TRY(write(std::move(nodes[n]), plan_.role(n)));
    }
    name_outputs();
    FLEETFIT_TRY(rewrite::remove_dead_nodes(graph_));
    FLEETFIT_TRY(infer_shapes(graph_));
    return std::move(graph_);
  }

 private:
  /// One scale for all tensors of a group.
  struct Group {
    ActivationScale scale;
    TensorId scale_id = kNoTensor;
    TensorId zero_point_id = kNoTensor;
  };

  Group& group_of(TensorId id) { return groups_[plan_.group(id)]; }

  /// Its parameters as constants, made once.
  const Group& written_group(TensorId id) {
    auto& group = group_of(id);
    if (group.scale_id != kNoTensor) return group;
    const auto name = graph_.tensor(id).name;
    group.scale_id = constant(name + ".scale", DType::f32, {}, std::vector{group.scale.scale});
    group.zero_point_id =
        constant(name + ".zero_point", DType::u8, {}, std::vector{group.scale.zero_point});
    return group;
  }

  // --- Emitting ---

  TensorId constant(const std::string& name, DType dtype, const Shape& shape, TensorData values) {
    return graph_.add_tensor(
        {.name = name, .dtype = dtype, .shape = shape, .data = std::move(values)});
  }
  template <class T>
  TensorId constant(const std::string& name, DType dtype, const Shape& shape,
                    const std::vector<T>& values) {
    return constant(name, dtype, shape, TensorData::copy(values));
  }

  void emit(const std::string& near, std::string_view role, Operator op,
            std::vector<TensorId> inputs, TensorId output) {
    graph_.nodes.push_back({.name = fmt::format("{}.{}", near, role),
                            .op = std::move(op),
                            .inputs = std::move(inputs),
                            .outputs = {output}});
  }

  /// The real values of stored numbers.
  TensorId dequantize(const std::string& name, std::vector<TensorId> inputs,
                      std::int64_t axis = 1) {
    const auto shape = graph_.tensor(inputs[0]).shape;
    const auto real =
        graph_.add_tensor({.name = name + ".real", .dtype = DType::f32, .shape = shape});
    emit(name, "dequantize", DequantizeLinear{axis}, std::move(inputs), real);
    return real;
  }

  /// From here on, readers of a quantized tensor see it rounded.
  void round_trip(TensorId id) {
    if (!plan_.is_quantized(id)) return;
    const auto& group = written_group(id);
    const auto name = graph_.tensor(id).name;
    const auto shape = graph_.tensor(id).shape;
    const auto stored =
        graph_.add_tensor({.name = name + ".quantized", .dtype = DType::u8, .shape = shape});
    emit(name, "quantize", QuantizeLinear{}, {id, group.scale_id, group.zero_point_id}, stored);
    real_[static_cast<std::size_t>(id)] =
        dequantize(name, {stored, group.scale_id, group.zero_point_id});
  }

  TensorId rounded(TensorId id) const {
    const auto real = id == kNoTensor ? kNoTensor : real_[static_cast<std::size_t>(id)];
    return real == kNoTensor ? id : real;
  }

  TensorId rounded_constant(TensorId id) {
    if (const auto known = real_constant_.find(id); known != real_constant_.end())
      return known->second;
    const auto& group = written_group(id);
    const auto name = graph_.tensor(id).name;
    const auto values = *rewrite::float_values(graph_, id);
    const auto stored = constant(name + ".quantized", DType::u8, *graph_.tensor(id).shape,
                                 to_uint8(values, group.scale));
    const auto real = dequantize(name, {stored, group.scale_id, group.zero_point_id});
    real_constant_.emplace(id, real);
    return real;
  }

  // --- Nodes ---

  Status write(Node node, Role role) {
    // What is data and what weights depends on constants, so inputs are exchanged after it is
    // known.
    const auto data = role == Role::floats ? std::vector<std::size_t>{} : data_inputs(graph_, node);
    const bool is_layer = role == Role::computes && has_weights(graph_, node);
    const auto exact = node.inputs;
    for (auto& id : node.inputs) {
      if (id != kNoTensor && !graph_.tensor(id).is_constant()) id = rounded(id);
    }
    for (const auto i : data) {
      if (graph_.tensor(exact[i]).is_constant() && plan_.is_quantized(exact[i]))
        node.inputs[i] = rounded_constant(exact[i]);
    }
    if (is_layer) {
      if (auto ok = quantize_layer(node, group_of(exact[0]).scale.scale); !ok)
        return core::within(describe(node), ok.error());
    }
    const auto outputs = node.outputs;
    graph_.nodes.push_back(std::move(node));
    for (const auto id : outputs) {
      if (id != kNoTensor) round_trip(id);
    }
    return {};
  }

  Status quantize_layer(Node& node, float input_scale) {
    untranspose(graph_, node);
    const auto shape = *graph_.tensor(node.inputs[1]).shape;
    const auto axis = per_channel_ ? output_axis(node, shape) : std::nullopt;
    ChannelView view;
    if (axis) {
      view.channels = static_cast<std::size_t>(shape[*axis]);
      view.inner = static_cast<std::size_t>(
          elements({shape.begin() + static_cast<std::ptrdiff_t>(*axis) + 1, shape.end()}));
    }
    if (elements(shape) == 0) return {};
    FLEETFIT_ASSIGN(auto layer, only_costs_
                                    ? Result<StoredLayer>(layer_of_zeros(graph_, node, view))
                                    : stored_layer(graph_, node, view, input_scale));
    write_weights(node, layer.weights, layer.scales, axis);
    if (layer.bias) write_bias(node, *layer.bias, std::move(layer.scales), axis);
    return {};
  }

  void write_weights(Node& node, const TensorData& stored, const LayerScales& scales,
                     std::optional<std::size_t> axis) {
    const auto name = graph_.tensor(node.inputs[1]).name;
    const auto shape = *graph_.tensor(node.inputs[1]).shape;
    const auto channels = axis ? Shape{shape[*axis]} : Shape{};
    const std::vector<std::int8_t> zeros(scales.weights.size(), 0);
    node.inputs[1] = dequantize(name,
                                {constant(name + ".quantized", DType::i8, shape, stored),
                                 constant(name + ".scale", DType::f32, channels, scales.weights),
                                 constant(name + ".zero_point", DType::i8, channels, zeros)},
                                static_cast<std::int64_t>(axis.value_or(1)));
  }

  void write_bias(Node& node, const TensorData& stored, LayerScales scales,
                  std::optional<std::size_t> axis) {
    const auto name = graph_.tensor(node.inputs[2]).name;
    const Shape shape{static_cast<std::int64_t>(scales.bias.size())};
    if (!axis) scales.bias.resize(1);  // they are all alike
    node.inputs[2] =
        dequantize(name,
                   {constant(name + ".quantized", DType::i32, shape, stored),
                    constant(name + ".scale", DType::f32, axis ? shape : Shape{}, scales.bias)},
                   0);
  }

  /// What leaves the network is rounded too, under the name that users know.
  void name_outputs() {
    for (auto& id : graph_.outputs) {
      const auto exact = id;
      const bool made_here =
          std::find(graph_.inputs.begin(), graph_.inputs.end(), exact) == graph_.inputs.end();
      if (!made_here || rounded(exact) == exact) continue;
      id = rounded(exact);
      const auto name = graph_.tensor(exact).name;
      if (graph_.tensor(id).name == name) continue;  // an output that is listed twice
      graph_.tensor(id).name = name;
      graph_.tensor(exact).name = name + ".exact";
    }
  }

  Graph graph_;
  Plan plan_;
  bool per_channel_;
  bool only_costs_;
  std::map<TensorId, Group> groups_;
  std::vector<TensorId> real_;  // what readers see in place of each tensor
  std::map<TensorId, TensorId> real_constant_;
};

bool is_kept(const Node& node, const QuantizeOptions& options) {
  const auto& names = options.keep_float;
  return std::find(names.begin(), names.end(), node.name) != names.end();
}

Plan make_plan(const Graph& graph, const QuantizeOptions& options) {
  std::vector<bool> kept;
  for (const auto& node : graph.nodes) kept.push_back(is_kept(node, options));
  return {graph, kept};
}

Status check_names(const Graph& graph, const QuantizeOptions& options) {
  for (const auto& name : options.keep_float) {
    const bool found = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                   [&](const Node& node) { return node.name == name; });
    if (!found) return refuse(fmt::format("there is no node '{}' to keep in float", name));
  }
  return {};
}

}  // namespace

bool is_quantized(const Graph& graph) {
  const auto converts = [](const Node& node) {
    return std::holds_alternative<QuantizeLinear>(node.op) ||
           std::holds_alternative<DequantizeLinear>(node.op);
  };
  return std::ranges::any_of(graph.nodes, converts) ||
         std::ranges::any_of(graph.tensors,
                             [](const Tensor& t) { return t.quantization.has_value(); });
}

std::vector<TensorId> tensors_to_observe(const Graph& prepared, const QuantizeOptions& options) {
  return make_plan(prepared, options).sources();
}

Result<Graph> quantize(Graph prepared, const Ranges& ranges, const QuantizeOptions& options) {
  FLEETFIT_TRY(validate(prepared));
  FLEETFIT_TRY(check_names(prepared, options));
  auto plan = make_plan(prepared, options);
  return Quantizer(std::move(prepared), std::move(plan), options).run(ranges);
}

}  // namespace fleetfit::graph
