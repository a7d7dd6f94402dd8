#include "graph/tflite/conversion.h"

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

std::optional<Activation> fused(file::ActivationFunctionType type) {
  switch (type) {
    case file::ActivationFunctionType::NONE:
      return Activation{};
    case file::ActivationFunctionType::RELU:
      return kRelu;
    case file::ActivationFunctionType::RELU_N1_TO_1:
      return Activation{ActivationKind::clip, -1, 1};
    case file::ActivationFunctionType::RELU6:
      return kRelu6;
    case file::ActivationFunctionType::TANH:
      return kTanh;
    default:
      return std::nullopt;
  }
}

}  // namespace fleetfit::graph::tflite
