#include "graph/ncnn/conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fleetfit/core/random.h"
#include "graph/infer_node.h"

namespace fleetfit::graph::ncnn {
namespace {

// 64 MB in all, a hundred times what the largest real network has.
constexpr std::int64_t kMostScales = std::int64_t{1} << 24;

constexpr int kShapeHints = 30;  // dims, w, h, c of each output, which ncnn's tools write down
constexpr double kInt8Spread = 127;

std::uint64_t seed_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return core::mix(hash, 0);
}

int dims_of(const Tensor& tensor) {
  return tensor.shape ? static_cast<int>(tensor.shape->size()) - 1 : 0;
}

/// Names of parameters are in no file, so an unknown layer's are called by their numbers.
std::map<std::string, Attribute> numbered_attributes(const Params& params) {
  std::map<std::string, Attribute> attributes;
  for (const auto& [id, param] : params.all()) {
    if (id == kShapeHints) continue;
    attributes[fmt::format("{}", id)] = attribute_of(param);
  }
  return attributes;
}

}  // namespace

std::vector<TensorId> GraphWriter::add(Node node, std::size_t outputs) {
  for (std::size_t i = 0; i < outputs; ++i) {
    const auto name = outputs == 1 ? node.name : fmt::format("{}:{}", node.name, i);
    node.outputs.push_back(graph_.add_tensor({.name = name, .dtype = DType::f32}));
  }
  if (status_) infer(node);
  auto ids = node.outputs;
  graph_.nodes.push_back(std::move(node));
  return ids;
}

void GraphWriter::infer(const Node& node) {
  std::vector<Operand> operands;
  for (const auto id : node.inputs) {
    if (id == kNoTensor) {
      operands.push_back({});
      continue;
    }
    const auto& tensor = graph_.tensor(id);
    operands.push_back({.present = true,
                        .dtype = tensor.dtype,
                        .shape = tensor.shape ? &*tensor.shape : nullptr,
                        .value = tensor.data ? &*tensor.data : nullptr});
  }
  auto outcomes = infer_node(node, operands);
  if (!outcomes) return keep(outcomes.error().code, outcomes.error().message);
  for (std::size_t i = 0; i < node.outputs.size() && i < outcomes->size(); ++i) {
    auto& tensor = graph_.tensor(node.outputs[i]);
    if ((*outcomes)[i].dtype != DType::unknown) tensor.dtype = (*outcomes)[i].dtype;
    tensor.shape = std::move((*outcomes)[i].shape);
  }
}

void GraphWriter::define(std::string_view name, const Blob& blob, int line) {
  const auto [entry, is_new] = blobs_.try_emplace(std::string(name), Definition{blob, line});
  if (!is_new) {
    return keep(ErrorCode::invalid_input,
                fmt::format("blob {} is already made in line {}", name, entry->second.line));
  }
  order_.emplace_back(name);
}

const Blob& GraphWriter::read(std::string_view name) {
  static constexpr Blob kNothing{};
  const auto found = blobs_.find(name);
  if (found == blobs_.end()) {
    keep(ErrorCode::invalid_input, fmt::format("no layer before it makes blob {}", name));
    return kNothing;
  }
  found->second.is_read = true;
  return found->second.blob;
}

void GraphWriter::finish_outputs() {
  std::vector<bool> is_output(graph_.tensors.size(), false);
  const auto append = [&](TensorId id) {
    if (is_output[static_cast<std::size_t>(id)]) return;
    is_output[static_cast<std::size_t>(id)] = true;
    graph_.outputs.push_back(id);
  };
  for (const auto& name : order_) {
    const auto& definition = blobs_.find(name)->second;
    if (!definition.is_read) append(definition.blob.tensor);
  }
  for (const auto id : extra_outputs_) append(id);
}

bool GraphWriter::reserve_scales(std::int64_t count) {
  scales_ += std::min(count, kMostScales + 1 - scales_);
  return scales_ <= kMostScales;
}

void GraphWriter::keep(ErrorCode code, std::string message) {
  if (status_) status_ = fail(code, std::move(message));
}

Attribute attribute_of(const Param& param) {
  if (!param.is_integer)
    return param.is_array ? Attribute(param.numbers) : Attribute(param.numbers.front());
  Ints whole(param.numbers.begin(), param.numbers.end());
  return param.is_array ? Attribute(std::move(whole)) : Attribute(whole.front());
}

Blob Conversion::blob(std::size_t i) {
  if (i < layer_.inputs.size()) return writer_.read(layer_.inputs[i]);
  fail(fmt::format("a {} layer needs more than {} inputs", layer_.type, layer_.inputs.size()));
  return {};
}

TensorId Conversion::flat(const Blob& b) {
  if (!b.one_by_one) return b.tensor;
  return add(Flatten{.axis = 1}, {b.tensor}, fmt::format("flat{}", ++forms_));
}

TensorId Conversion::image(const Blob& b) {
  if (b.dims != 1 || b.one_by_one) return b.tensor;
  const auto role = fmt::format("image{}", ++forms_);
  return add(Unsqueeze{}, {b.tensor, ints(role + "_axes", {2, 3})}, role);
}

Shape Conversion::extents(const Blob& b) const {
  if (b.tensor == kNoTensor) return {};
  const auto& shape = writer_.graph().tensor(b.tensor).shape;
  if (!shape || shape->empty()) return {};
  return {shape->begin() + 1, b.one_by_one ? shape->begin() + 2 : shape->end()};
}

std::int64_t Conversion::axis(const Blob& b, std::int64_t ncnn_axis) {
  if (b.one_by_one) return 1;
  return ncnn_axis < 0 ? ncnn_axis : ncnn_axis + 1;
}

TensorId Conversion::weights(const WeightSpec& spec) {
  const auto spread = std::sqrt(6.0 / static_cast<double>(std::max<std::int64_t>(spec.fan_in, 1)));
  if (!spec.is_int8) return filled(spec.role, spec.shape, 0, spread);

  const auto id =
      add_constant(spec.role, DType::i8, spec.shape, {.dtype = DType::i8, .spread = kInt8Spread});
  const auto channels = spec.shape[static_cast<std::size_t>(spec.channel_axis)];
  if (!writer_.reserve_scales(channels)) {
    fail("its quantized weights have more channels than any network has");
    return id;
  }
  const auto count = static_cast<std::size_t>(channels);
  writer_.graph().tensor(id).quantization =
      Quantization{.scales = std::vector<float>(count, static_cast<float>(spread / kInt8Spread)),
                   .zero_points = std::vector<std::int32_t>(count, 0),
                   .axis = spec.channel_axis};
  return id;
}

TensorId Conversion::filled(std::string_view role, const Shape& shape, double center,
                            double spread) {
  return add_constant(role, DType::f32, shape, {.center = center, .spread = spread});
}

TensorId Conversion::add_constant(std::string_view role, DType dtype, const Shape& shape,
                                  Recipe recipe) {
  const auto count = element_count(shape);
  if (!count) fail(fmt::format("{} {}", role, count.error().message));
  recipe.count = static_cast<std::size_t>(count.value_or(0));
  recipe.seed = seed_of(name_of(role));
  return writer_.graph().add_tensor({.name = name_of(role),
                                     .dtype = dtype,
                                     .shape = count ? shape : Shape{0},
                                     .data = TensorData::generate(recipe)});
}

TensorId Conversion::ints(std::string_view role, const Ints& values) {
  return writer_.graph().add_ints(name_of(role), values);
}

TensorId Conversion::scalar(std::string_view role, float value) {
  return writer_.graph().add_floats(name_of(role), {}, {value});
}

TensorId Conversion::add(Operator op, std::vector<TensorId> inputs, std::string_view role) {
  return writer_.add({.name = name_of(role), .op = std::move(op), .inputs = std::move(inputs)}, 1)
      .front();
}

std::vector<TensorId> Conversion::add_many(Operator op, std::vector<TensorId> inputs,
                                           std::size_t outputs) {
  return writer_.add({.name = name_of({}), .op = std::move(op), .inputs = std::move(inputs)},
                     outputs);
}

void Conversion::activate_last(const Activation& activation) {
  if (!writer_.graph().nodes.empty()) writer_.graph().nodes.back().activation = activation;
}

void Conversion::output(std::size_t i, TensorId id) {
  if (i >= output_count()) return fail(fmt::format("a {} layer needs an output", layer_.type));
  auto& tensor = writer_.graph().tensor(id);
  tensor.name = layer_.outputs[i];
  define(i, {.tensor = id, .dims = dims_of(tensor)});
}

void Conversion::output_one_by_one(TensorId id) {
  const auto& shape = writer_.graph().tensor(id).shape;
  const bool fits = shape && shape->size() == 4 && (*shape)[2] == 1 && (*shape)[3] == 1;
  if (!fits || output_count() == 0) return output(0, id);
  writer_.graph().tensor(id).name = layer_.outputs[0];
  define(0, {.tensor = id, .dims = 1, .one_by_one = true});
}

void Conversion::alias(std::size_t i, const Blob& blob) { define(i, blob); }

void Conversion::define(std::size_t i, const Blob& blob) {
  writer_.define(layer_.outputs[i], blob, layer_.line);
}

void Conversion::unknown(std::string reason, std::map<std::string, Attribute> attributes) {
  if (attributes.empty()) attributes = numbered_attributes(layer_.params);
  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < input_count(); ++i) inputs.push_back(flat(i));
  const auto ids = add_many(Unknown{.domain = "",
                                    .type = std::string(layer_.type),
                                    .attributes = std::move(attributes),
                                    .reason = std::move(reason)},
                            std::move(inputs), output_count());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto& tensor = writer_.graph().tensor(ids[i]);
    if (!tensor.shape) tensor.shape = shape_hint(i);
    output(i, ids[i]);
  }
}

std::optional<Shape> Conversion::shape_hint(std::size_t output) {
  const auto hints = layer_.params.integers(kShapeHints, "shape hints");
  if (hints.size() < 4 * (output + 1)) return std::nullopt;
  const auto* hint = hints.data() + 4 * output;
  Shape shape;
  if (hint[0] == 1) shape = {1, hint[1]};
  if (hint[0] == 2) shape = {1, hint[2], hint[1]};
  if (hint[0] == 3) shape = {1, hint[3], hint[2], hint[1]};
  if (shape.empty() || !element_count(shape)) return std::nullopt;
  return shape;
}

void Conversion::fail(std::string message) {
  writer_.keep(ErrorCode::invalid_input, std::move(message));
}

std::string Conversion::name_of(std::string_view role) const {
  return role.empty() ? std::string(layer_.name) : fmt::format("{}/{}", layer_.name, role);
}

}  // namespace fleetfit::graph::ncnn
