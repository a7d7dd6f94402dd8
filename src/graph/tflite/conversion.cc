#include "graph/tflite/conversion.h"

#include <flatbuffers/minireflect.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "graph/tflite/parts.h"

namespace fleetfit::graph::tflite {
namespace {

constexpr std::size_t kShortListBytes = 1024;

/// Rows become columns.
std::vector<std::byte> transposed(std::span<const std::byte> matrix, std::size_t columns,
                                  std::size_t element_bytes) {
  std::vector<std::byte> result(matrix.size());
  const auto rows = columns == 0 ? 0 : matrix.size() / element_bytes / columns;
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(&result[(column * rows + row) * element_bytes],
                  &matrix[(row * columns + column) * element_bytes], element_bytes);
    }
  }
  return result;
}

/// The tensor with its first and last dimension swapped, the first being of one element.
Tensor swapped(Tensor tensor) {
  if (tensor.data) {
    tensor.data = TensorData::own(transposed(tensor.data->bytes(),
                                             static_cast<std::size_t>(tensor.shape->back()),
                                             size_of(tensor.dtype)));
  }
  std::swap(tensor.shape->front(), tensor.shape->back());
  auto& quantization = tensor.quantization;
  if (quantization && quantization->axis == 0) {
    quantization->axis = 3;
  } else if (quantization && quantization->axis == 3) {
    quantization->axis = 0;
  }
  return tensor;
}

/// The constant below a conversion of weights (from float16 or quantized to float) if nobody else
/// reads either; else nothing.
std::optional<TensorId> constant_below(const Conversion& c, TensorId weights) {
  const auto& readers = c.progress.readers;
  const auto made = c.progress.made_by.find(weights);
  if (made == c.progress.made_by.end()) return std::nullopt;
  const auto& node = c.graph.nodes[made->second];
  if (!std::holds_alternative<Cast>(node.op) && !std::holds_alternative<Requantize>(node.op))
    return std::nullopt;
  const auto below = node.inputs[0];
  const auto& tensor = c.graph.tensor(below);
  const bool alone = readers[static_cast<std::size_t>(weights)] == 1 &&
                     readers[static_cast<std::size_t>(below)] == 1;
  if (!alone || !tensor.is_constant() || size_of(tensor.dtype) == 0 ||
      tensor.shape != c.graph.tensor(weights).shape)
    return std::nullopt;
  return below;
}

}  // namespace

std::size_t Options::place(std::string_view field) const {
  const auto* end = type_->names + type_->num_elems;
  const auto* found = std::find(type_->names, end, field);
  assert(found != end);
  return static_cast<std::size_t>(found - type_->names);
}

std::int64_t Options::integer(std::string_view field, std::int64_t fallback) const {
  if (table_ == nullptr) return fallback;
  const auto i = place(field);
  const auto offset = flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(i));
  if (!table_->CheckField(offset)) return fallback;
  switch (type_->type_codes[i].base_type) {
    case flatbuffers::ET_INT:
      return table_->GetField<std::int32_t>(offset, 0);
    case flatbuffers::ET_CHAR:
      return table_->GetField<std::int8_t>(offset, 0);
    default:
      return table_->GetField<std::uint8_t>(offset, 0);
  }
}

float Options::number(std::string_view field) const {
  if (table_ == nullptr) return 0;
  const auto i = static_cast<flatbuffers::voffset_t>(place(field));
  return table_->GetField<float>(flatbuffers::FieldIndexToOffset(i), 0);
}

std::string_view Options::name(std::string_view field) const {
  if (table_ == nullptr) return {};
  const auto* names = type_->type_refs[type_->type_codes[place(field)].sequence_ref]();
  const auto value = integer(field);
  for (std::size_t i = 0; i < names->num_elems; ++i) {
    const auto known = names->values != nullptr ? names->values[i] : static_cast<std::int64_t>(i);
    if (known == value) return names->names[i];
  }
  return {};
}

DType Options::type(std::string_view field) const {
  return dtype_of(static_cast<file::TensorType>(integer(field)));
}

std::optional<Options::List> Options::list(std::string_view field, std::size_t most) const {
  if (table_ == nullptr) return std::nullopt;
  const auto i = static_cast<flatbuffers::voffset_t>(place(field));
  const auto* found = table_->GetPointer<const flatbuffers::Vector<std::int32_t>*>(
      flatbuffers::FieldIndexToOffset(i));
  if (found == nullptr) return std::nullopt;
  if (found->size() > most) return List{.is_long = true};
  return List{.values = {found->begin(), found->end()}};
}

const Shape* Conversion::shape(std::size_t i) const {
  if (input(i) == kNoTensor) return nullptr;
  const auto& known = graph.tensor(input(i)).shape;
  return known ? &*known : nullptr;
}

std::optional<Ints> Conversion::ints(std::size_t i) const {
  if (input(i) == kNoTensor) return std::nullopt;
  const auto& data = graph.tensor(input(i)).data;
  if (data && data->size_bytes() > kShortListBytes) return std::nullopt;
  if (!data && shape(i) != nullptr && elements(*shape(i)) == 0) return Ints{};
  return constant_ints(graph, input(i));
}

std::optional<std::int64_t> Conversion::integer(std::size_t i) const {
  const auto values = ints(i);
  if (!values || values->size() != 1) return std::nullopt;
  return values->front();
}

Options Conversion::options(std::string_view type) const {
  const auto* table = static_cast<const flatbuffers::Table*>(source.builtin_options());
  const auto* types = file::BuiltinOptionsTypeTable();
  const auto index = flatbuffers::LookupEnum(
      static_cast<std::int64_t>(source.builtin_options_type()), types->values, types->num_elems);
  if (table == nullptr || index < 1 || types->names[index] != type) return {};
  return {table, types->type_refs[types->type_codes[index].sequence_ref]()};
}

std::span<const std::uint8_t> Conversion::custom_options() const {
  const auto* bytes = source.custom_options();
  return bytes == nullptr ? std::span<const std::uint8_t>()
                          : std::span(bytes->data(), bytes->size());
}

TensorId Conversion::add_ints(std::string_view role, const Ints& values) {
  return graph.add_ints(fmt::format("{}/{}", name, role), values);
}

TensorId Conversion::add_before(Operator op, std::vector<TensorId> op_inputs, std::string_view role,
                                Tensor like) {
  auto node_name = fmt::format("{}/{}", name, role);
  like.name = node_name;
  like.data.reset();
  const auto output = graph.add_tensor(std::move(like));
  graph.nodes.push_back({.name = std::move(node_name),
                         .op = std::move(op),
                         .inputs = std::move(op_inputs),
                         .outputs = {output}});
  return output;
}

std::optional<Activation> fused(const Options& options) {
  if (!options) return Activation{};
  const auto name = options.name("fused_activation_function");
  if (name == "NONE") return Activation{};
  if (name == "RELU") return kRelu;
  if (name == "RELU_N1_TO_1") return Activation{ActivationKind::clip, -1, 1};
  if (name == "RELU6") return kRelu6;
  if (name == "TANH") return kTanh;
  return std::nullopt;
}

Result<Window> window(Ints kernel, const Steps& steps, std::string_view padding) {
  Window w{.kernel = std::move(kernel),
           .strides = {steps.stride_h, steps.stride_w},
           .dilations = {steps.dilation_h, steps.dilation_w},
           .pads_begin = {0, 0},
           .pads_end = {0, 0}};
  for (const auto* values : {&w.kernel, &w.strides, &w.dilations}) {
    if ((*values)[0] < 1 || (*values)[1] < 1)
      return refuse("kernel, strides and dilations must be positive");
  }
  if (padding != "SAME" && padding != "VALID")
    return refuse("its padding is neither SAME nor VALID");
  w.auto_pad = padding == "SAME" ? AutoPad::same_upper : AutoPad::valid;
  return w;
}

std::vector<TensorId> with_optional(std::vector<TensorId> inputs, TensorId optional) {
  if (optional != kNoTensor) inputs.push_back(optional);
  return inputs;
}

Result<TensorId> depthwise_weights(Conversion& c, TensorId weights) {
  auto& done = c.progress.depthwise_weights;
  if (const auto known = done.find(weights); known != done.end()) return known->second;
  if (c.graph.tensor(weights).shape->front() != 1)
    return refuse("the first dimension of depthwise weights is not 1");
  if (size_of(c.graph.tensor(weights).dtype) == 0) return refuse("its weights are no numbers");

  const auto below = constant_below(c, weights);
  const auto& constant = c.graph.tensor(below.value_or(weights));
  if (constant.is_constant() && !c.progress.budget.take(constant.data->size_bytes()))
    return refuse("the file refers to the same weights again and again");
  const auto swap = [&](TensorId id) { c.graph.tensor(id) = swapped(c.graph.tensor(id)); };
  if (below) {
    swap(*below);
    swap(weights);
    return done[weights] = weights;
  }
  if (!constant.is_constant()) {
    const auto output =
        c.add_before(Transpose{{3, 1, 2, 0}}, {weights}, "weights", swapped(constant));
    return done[weights] = output;
  }
  if (c.progress.readers[static_cast<std::size_t>(weights)] == 1) {
    swap(weights);
    return done[weights] = weights;
  }
  return done[weights] = c.graph.add_tensor(swapped(constant));
}

}  // namespace fleetfit::graph::tflite
