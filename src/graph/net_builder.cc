#include "fleetfit/graph/net_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fleetfit/core/random.h"
#include "fleetfit/graph/shape_inference.h"
#include "graph/infer_node.h"

namespace fleetfit::graph {
namespace {

// Uniform numbers in [-s, s) have the standard deviation s / sqrt(3).
double spread_for(double stddev) { return stddev * std::numbers::sqrt3; }

// Keeps the variance of activations through a rectified layer (He et al.).
double he_stddev(std::int64_t fan_in) {
  return std::sqrt(2.0 / static_cast<double>(std::max<std::int64_t>(fan_in, 1)));
}

Window square_window(std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  return {.kernel = {kernel, kernel},
          .strides = {stride, stride},
          .dilations = {1, 1},
          .pads_begin = {pad, pad},
          .pads_end = {pad, pad}};
}

std::int64_t centered_pad(std::int64_t kernel, std::int64_t dilation) {
  return dilation * (kernel - 1) / 2;
}

Window conv_window(const ConvSpec& spec) {
  const auto width = spec.kernel_w > 0 ? spec.kernel_w : spec.kernel;
  const auto pad_h = spec.pad >= 0 ? spec.pad : centered_pad(spec.kernel, spec.dilation);
  auto pad_w = spec.pad_w;
  if (pad_w < 0)
    pad_w = spec.pad >= 0 && width == spec.kernel ? spec.pad : centered_pad(width, spec.dilation);
  return {.kernel = {spec.kernel, width},
          .strides = {spec.stride, spec.stride},
          .dilations = {spec.dilation, spec.dilation},
          .pads_begin = {pad_h, pad_w},
          .pads_end = {pad_h, pad_w}};
}

}  // namespace

std::int64_t scaled_channels(std::int64_t channels, double width, std::int64_t divisor) {
  const double exact = static_cast<double>(channels) * width;
  const auto step = static_cast<double>(divisor);
  const auto rounded =
      std::max(divisor, static_cast<std::int64_t>((exact + step / 2) / step) * divisor);
  return static_cast<double>(rounded) < 0.9 * exact ? rounded + divisor : rounded;
}

NetBuilder::NetBuilder(std::string name, std::uint64_t seed) : seed_(seed) {
  graph_.name = std::move(name);
}

std::string NetBuilder::fresh_name(std::string_view role) {
  auto found = used_.find(role);
  if (found == used_.end()) found = used_.emplace(std::string(role), 0).first;
  return fmt::format("{}_{}", role, found->second++);
}

TensorId NetBuilder::input(std::string name, const Shape& shape, DType dtype) {
  std::vector<std::string> symbols(shape.size());
  if (!symbols.empty()) symbols[0] = "N";
  const auto id = graph_.add_tensor(
      {.name = std::move(name), .dtype = dtype, .shape = shape, .symbols = std::move(symbols)});
  graph_.inputs.push_back(id);
  return id;
}

TensorId NetBuilder::parameter(std::string_view role, const Shape& shape, double stddev,
                               double center) {
  const auto count = element_count(shape);
  if (!count) {
    if (status_) status_ = core::within(role, count.error());
    return kNoTensor;
  }
  return graph_.add_tensor({.name = fresh_name(role),
                            .dtype = DType::f32,
                            .shape = shape,
                            .data = TensorData::generate({.count = static_cast<std::size_t>(*count),
                                                          .center = center,
                                                          .spread = spread_for(stddev),
                                                          .seed = next_seed()})});
}

std::uint64_t NetBuilder::next_seed() const { return core::mix(seed_, graph_.tensors.size()); }

const Node* NetBuilder::batch_norm_before(TensorId x) const {
  const auto made = std::ranges::find_if(graph_.nodes.rbegin(), graph_.nodes.rend(),
                                         [&](const Node& n) { return n.outputs[0] == x; });
  const bool is_norm = made != graph_.nodes.rend() && std::holds_alternative<BatchNorm>(made->op);
  return is_norm ? &*made : nullptr;
}

// As in a trained network a branch that is added to its input adds little. With scales around 1
// activations would double with every block, and rounding with them until no two runtimes agree on
// the output of a deep network.
void NetBuilder::soften_branch(TensorId a, TensorId b) {
  constexpr double kBranchScale = 0.25;
  const Node* of_a = batch_norm_before(a);
  const Node* of_b = batch_norm_before(b);
  if ((of_a == nullptr) == (of_b == nullptr)) return;
  auto& scale = graph_.tensor((of_a != nullptr ? of_a : of_b)->inputs[1]);
  const auto count = static_cast<std::size_t>(element_count(*scale.shape).value_or(0));
  scale.data = TensorData::generate({.count = count,
                                     .center = kBranchScale,
                                     .spread = spread_for(0.1 * kBranchScale),
                                     .seed = next_seed()});
}

TensorId NetBuilder::constant_ints(std::string_view role, const Ints& values) {
  return graph_.add_ints(fresh_name(role), values);
}

TensorId NetBuilder::constant_scalar(std::string_view role, float value) {
  return graph_.add_floats(fresh_name(role), {}, {value});
}

std::vector<TensorId> NetBuilder::append_many(Operator op, std::vector<TensorId> inputs,
                                              std::string_view role, int outputs) {
  Node node{.name = {}, .op = std::move(op), .inputs = std::move(inputs)};
  node.name = fresh_name(role.empty() ? type_name(node.op) : role);
  for (int i = 0; i < outputs; ++i) {
    node.outputs.push_back(
        graph_.add_tensor({.name = outputs == 1 ? node.name : fmt::format("{}.{}", node.name, i)}));
  }
  if (status_) {
    graph_.nodes.push_back(node);
    status_ = infer_last();
  }
  return node.outputs;
}

TensorId NetBuilder::append(Operator op, std::vector<TensorId> inputs, std::string_view role) {
  return append_many(std::move(op), std::move(inputs), role, 1).front();
}

Status NetBuilder::infer_last() {
  const auto& node = graph_.nodes.back();
  std::vector<Operand> operands;
  for (const auto id : node.inputs) {
    if (id == kNoTensor) {
      operands.emplace_back();
      continue;
    }
    const auto& tensor = graph_.tensor(id);
    const auto taken = shapes_.find(id);
    const auto* value = taken != shapes_.end() ? &taken->second : nullptr;
    operands.push_back({true, tensor.dtype, tensor.shape ? &*tensor.shape : nullptr,
                        tensor.data ? &*tensor.data : value});
  }
  auto outcomes = infer_node(node, operands);
  if (!outcomes) return core::within(describe(node), outcomes.error());
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    auto& tensor = graph_.tensor(node.outputs[i]);
    tensor.dtype = (*outcomes)[i].dtype;
    tensor.shape = std::move((*outcomes)[i].shape);
  }
  // Layers behind an Expand to the shape of another tensor must be able to ask for their shapes.
  if (node.op == Operator(ShapeOf{}))
    shapes_.emplace(node.outputs[0], TensorData::copy(shape(node.inputs[0])));
  return {};
}

TensorId NetBuilder::node(Operator op, std::vector<TensorId> inputs, std::string_view role) {
  return append(std::move(op), std::move(inputs), role);
}

TensorId NetBuilder::conv(TensorId x, const ConvSpec& spec) {
  const auto window = conv_window(spec);
  const auto per_group = channels(x) / std::max<std::int64_t>(spec.groups, 1);
  const auto fan_in = per_group * window.kernel[0] * window.kernel[1];
  std::vector<TensorId> inputs{
      x, parameter("Conv.weight", {spec.out, per_group, window.kernel[0], window.kernel[1]},
                   he_stddev(fan_in))};
  if (spec.bias) inputs.push_back(parameter("Conv.bias", {spec.out}, 0.01));
  return append(Conv{.window = window, .groups = spec.groups}, std::move(inputs), "Conv");
}

TensorId NetBuilder::conv_transpose(TensorId x, const ConvSpec& spec) {
  const auto window = conv_window(spec);
  const auto in = channels(x);
  const auto per_group = spec.out / std::max<std::int64_t>(spec.groups, 1);
  std::vector<TensorId> inputs{
      x,
      parameter("ConvTranspose.weight", {in, per_group, window.kernel[0], window.kernel[1]},
                he_stddev(in * window.kernel[0] * window.kernel[1] / (spec.stride * spec.stride)))};
  if (spec.bias) inputs.push_back(parameter("ConvTranspose.bias", {spec.out}, 0.01));
  return append(ConvTranspose{.window = window, .groups = spec.groups, .output_padding = {0, 0}},
                std::move(inputs), "ConvTranspose");
}

TensorId NetBuilder::batch_norm(TensorId x, float epsilon) {
  const Shape per_channel{channels(x)};
  const auto scale = parameter("BatchNorm.scale", per_channel, 0.1, 1);
  const auto shift = parameter("BatchNorm.shift", per_channel, 0.1);
  const auto mean = parameter("BatchNorm.mean", per_channel, 0.1);
  const auto variance = parameter("BatchNorm.variance", per_channel, 0.1, 1);
  return append(BatchNorm{.epsilon = epsilon}, {x, scale, shift, mean, variance}, "BatchNorm");
}

TensorId NetBuilder::conv_bn(TensorId x, const ConvSpec& spec, const Activation& activation,
                             float epsilon) {
  return activate(batch_norm(conv(x, spec), epsilon), activation);
}

TensorId NetBuilder::linear(TensorId x, std::int64_t out) {
  const auto in = shape(x).empty() ? 0 : shape(x).back();
  const auto stddev = std::sqrt(1.0 / static_cast<double>(std::max<std::int64_t>(in, 1)));
  if (shape(x).size() == 2) {
    const auto weight = parameter("Gemm.weight", {out, in}, stddev);
    return append(Gemm{.trans_b = true}, {x, weight, parameter("Gemm.bias", {out}, 0.01)}, "Gemm");
  }
  const auto product = linear_no_bias(x, out);
  return append(Elementwise{ElementwiseKind::add}, {product, parameter("MatMul.bias", {out}, 0.01)},
                "Add");
}

TensorId NetBuilder::linear_no_bias(TensorId x, std::int64_t out) {
  const auto in = shape(x).empty() ? 0 : shape(x).back();
  const auto stddev = std::sqrt(1.0 / static_cast<double>(std::max<std::int64_t>(in, 1)));
  return append(MatMul{}, {x, parameter("MatMul.weight", {in, out}, stddev)}, "MatMul");
}

TensorId NetBuilder::layer_norm(TensorId x, float epsilon) {
  const Shape last{shape(x).empty() ? 0 : shape(x).back()};
  const auto scale = parameter("LayerNorm.scale", last, 0.1, 1);
  return append(LayerNorm{.epsilon = epsilon}, {x, scale, parameter("LayerNorm.shift", last, 0.1)},
                "LayerNorm");
}

TensorId NetBuilder::activate(TensorId x, const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::none:
      return x;
    case ActivationKind::silu:
      return mul(x, activate(x, kSigmoid));
    case ActivationKind::gelu: {
      // x/2 * (1 + erf(x / sqrt 2)), in the order in which PyTorch exports it.
      const auto inner =
          append(Elementwise{ElementwiseKind::div},
                 {x, constant_scalar("Gelu.sqrt2", std::numbers::sqrt2_v<float>)}, "Div");
      const auto erf = append(Unary{UnaryKind::erf}, {inner}, "Erf");
      const auto one_more =
          append(Elementwise{ElementwiseKind::add}, {erf, constant_scalar("Gelu.one", 1)}, "Add");
      return append(Elementwise{ElementwiseKind::mul},
                    {mul(x, one_more), constant_scalar("Gelu.half", 0.5F)}, "Mul");
    }
    default:
      return append(Activate{activation}, {x}, {});
  }
}

TensorId NetBuilder::max_pool(TensorId x, const PoolSpec& spec) {
  auto window = square_window(spec.kernel, spec.stride, spec.pad);
  window.ceil_mode = spec.ceil_mode;
  return append(Pool{.kind = PoolKind::max, .window = window}, {x}, {});
}

TensorId NetBuilder::average_pool(TensorId x, const PoolSpec& spec) {
  auto window = square_window(spec.kernel, spec.stride, spec.pad);
  window.ceil_mode = spec.ceil_mode;
  return append(
      Pool{
          .kind = PoolKind::average, .window = window, .count_include_pad = spec.count_include_pad},
      {x}, {});
}

TensorId NetBuilder::global_average_pool(TensorId x) { return append(GlobalPool{}, {x}, {}); }

TensorId NetBuilder::softmax(TensorId x, std::int64_t axis) {
  return append(Softmax{.axis = axis}, {x}, {});
}

TensorId NetBuilder::lrn(TensorId x, const Lrn& lrn) { return append(lrn, {x}, {}); }

TensorId NetBuilder::add(TensorId a, TensorId b) {
  soften_branch(a, b);
  return append(Elementwise{ElementwiseKind::add}, {a, b}, {});
}

TensorId NetBuilder::sub(TensorId a, TensorId b) {
  return append(Elementwise{ElementwiseKind::sub}, {a, b}, {});
}

TensorId NetBuilder::mul(TensorId a, TensorId b) {
  return append(Elementwise{ElementwiseKind::mul}, {a, b}, {});
}

TensorId NetBuilder::scale(TensorId x, double factor) {
  return mul(x, constant_scalar("factor", static_cast<float>(factor)));
}

TensorId NetBuilder::matmul(TensorId a, TensorId b) { return append(MatMul{}, {a, b}, {}); }

TensorId NetBuilder::concat(const std::vector<TensorId>& parts, std::int64_t axis) {
  return append(Concat{.axis = axis}, parts, {});
}

std::vector<TensorId> NetBuilder::split(TensorId x, const Ints& sizes, std::int64_t axis) {
  return append_many(Split{.axis = axis}, {x, constant_ints("Split.sizes", sizes)}, {},
                     static_cast<int>(sizes.size()));
}

TensorId NetBuilder::slice(TensorId x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  const auto starts = constant_ints("Slice.starts", {begin});
  const auto ends = constant_ints("Slice.ends", {end});
  return append(Slice{}, {x, starts, ends, constant_ints("Slice.axes", {axis})}, {});
}

TensorId NetBuilder::pad(TensorId x, std::int64_t top, std::int64_t left, std::int64_t bottom,
                         std::int64_t right) {
  return append(Pad{}, {x, constant_ints("Pad.pads", {0, 0, top, left, 0, 0, bottom, right})}, {});
}

TensorId NetBuilder::reshape(TensorId x, const Ints& wanted) {
  return append(Reshape{}, {x, constant_ints("Reshape.shape", wanted)}, {});
}

TensorId NetBuilder::transpose(TensorId x, const Ints& perm) {
  return append(Transpose{.perm = perm}, {x}, {});
}

TensorId NetBuilder::flatten(TensorId x) { return append(Flatten{}, {x}, {}); }

TensorId NetBuilder::mean(TensorId x, const Ints& axes, bool keep_dims) {
  return append(Reduce{.kind = ReduceKind::mean, .axes = axes, .keep_dims = keep_dims}, {x}, {});
}

TensorId NetBuilder::resize(TensorId x, double factor, ResizeMode mode) {
  const auto f = static_cast<float>(factor);
  const auto scales = graph_.add_floats(fresh_name("Resize.scales"), {4}, {1, 1, f, f});
  const auto coordinates =
      mode == ResizeMode::nearest ? CoordinateMode::asymmetric : CoordinateMode::half_pixel;
  const auto nearest =
      mode == ResizeMode::nearest ? NearestMode::floor : NearestMode::round_prefer_floor;
  return append(Resize{.mode = mode, .coordinates = coordinates, .nearest = nearest},
                {x, kNoTensor, scales}, {});
}

TensorId NetBuilder::channel_shuffle(TensorId x, std::int64_t groups) {
  const auto per_group = channels(x) / std::max<std::int64_t>(groups, 1);
  const auto h = height(x);
  const auto w = width(x);
  const auto all = channels(x);
  return reshape(transpose(reshape(x, {0, groups, per_group, h, w}), {0, 2, 1, 3, 4}),
                 {0, all, h, w});
}

const Shape& NetBuilder::shape(TensorId id) const {
  static const Shape kNone;
  return id == kNoTensor || !graph_.tensor(id).shape ? kNone : *graph_.tensor(id).shape;
}

std::int64_t NetBuilder::channels(TensorId id) const {
  return shape(id).size() > 1 ? shape(id)[1] : 0;
}
std::int64_t NetBuilder::height(TensorId id) const {
  return shape(id).size() > 2 ? shape(id)[2] : 0;
}
std::int64_t NetBuilder::width(TensorId id) const {
  return shape(id).size() > 3 ? shape(id)[3] : 0;
}

void NetBuilder::output(TensorId id, std::string name) {
  if (id == kNoTensor) return;
  graph_.tensor(id).name = std::move(name);
  graph_.outputs.push_back(id);
}

Result<Graph> NetBuilder::finish() && {
  if (!status_) return core::within(graph_.name, status_.error());
  if (auto ok = infer_shapes(graph_); !ok) return core::within(graph_.name, ok.error());
  if (auto ok = validate(graph_); !ok) return core::within(graph_.name, ok.error());
  return std::move(graph_);
}

}  // namespace fleetfit::graph
