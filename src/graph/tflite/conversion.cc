#include "graph/tflite/conversion.h"

#include <flatbuffers/minireflect.h>

#include "tflite_generated.h"

namespace fleetfit::graph::tflite {
namespace {

constexpr std::size_t kShortListBytes = 1024;

}  // namespace

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

}  // namespace fleetfit::graph::tflite
