#include "graph/onnx/lowering.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <utility>

namespace fleetfit::graph::onnx_format {
namespace {

/// y = x * (1 + z) / 2
void half_of_one_more(const Node& near, TensorId x, TensorId z, TensorId y, Lowering& out) {
  const auto one_more = out.step(near, "one_more", Elementwise{ElementwiseKind::add},
                                 {z, out.scalar(near, "one", 1)});
  const auto product = out.step(near, "product", Elementwise{ElementwiseKind::mul}, {x, one_more});
  out.emit(near, "gelu", Elementwise{ElementwiseKind::mul},
           {product, out.scalar(near, "half", 0.5F)}, y);
}

}  // namespace

void lower_activation(const Node& near, const Activation& activation, TensorId x, TensorId y,
                      Lowering& out) {
  switch (activation.kind) {
    case ActivationKind::silu:
      return out.emit(near, "silu", Elementwise{ElementwiseKind::mul},
                      {x, out.step(near, "sigmoid", Activate{kSigmoid}, {x})}, y);
    case ActivationKind::mish: {
      const auto soft = out.step(near, "softplus", Activate{{ActivationKind::softplus}}, {x});
      return out.emit(near, "mish", Elementwise{ElementwiseKind::mul},
                      {x, out.step(near, "tanh", Activate{kTanh}, {soft})}, y);
    }
    case ActivationKind::gelu: {
      const auto inner = out.step(near, "over_sqrt2", Elementwise{ElementwiseKind::div},
                                  {x, out.scalar(near, "sqrt2", std::numbers::sqrt2_v<float>)});
      return half_of_one_more(near, x, out.step(near, "erf", Unary{UnaryKind::erf}, {inner}), y,
                              out);
    }
    case ActivationKind::gelu_tanh: {
      // tanh(sqrt(2/pi) * (x + 0.044715 x^3))
      const auto cube = out.step(near, "cube", Elementwise{ElementwiseKind::pow},
                                 {x, out.scalar(near, "three", 3)});
      const auto small = out.step(near, "small", Elementwise{ElementwiseKind::mul},
                                  {cube, out.scalar(near, "c", 0.044715F)});
      const auto sum = out.step(near, "sum", Elementwise{ElementwiseKind::add}, {x, small});
      const auto factor = static_cast<float>(std::sqrt(2 / std::numbers::pi));
      const auto inner = out.step(near, "inner", Elementwise{ElementwiseKind::mul},
                                  {sum, out.scalar(near, "factor", factor)});
      return half_of_one_more(near, x, out.step(near, "tanh", Activate{kTanh}, {inner}), y, out);
    }
    default:
      return out.emit(near, "activation", Activate{activation}, {x}, y);
  }
}

TensorId Lowering::fresh(const Node& near, std::string_view role, DType dtype) {
  return graph_.add_tensor({.name = fmt::format("{}.{}", near.name, role), .dtype = dtype});
}

TensorId Lowering::scalar(const Node& near, std::string_view role, float value) {
  return graph_.add_tensor({.name = fmt::format("{}.{}", near.name, role),
                            .dtype = DType::f32,
                            .shape = Shape{},
                            .data = TensorData::copy(std::vector<float>{value})});
}

TensorId Lowering::ints(const Node& near, std::string_view role, const Ints& values) {
  return graph_.add_ints(fmt::format("{}.{}", near.name, role), values);
}

void Lowering::emit(const Node& near, std::string_view role, Operator op,
                    std::vector<TensorId> inputs, TensorId output) {
  graph_.nodes.push_back({.name = fmt::format("{}.{}", near.name, role),
                          .op = std::move(op),
                          .inputs = std::move(inputs),
                          .outputs = {output}});
}

TensorId Lowering::step(const Node& near, std::string_view role, Operator op,
                        std::vector<TensorId> inputs) {
  const auto result = fresh(near, role);
  emit(near, role, std::move(op), std::move(inputs), result);
  return result;
}

Status Lowering::keep(Node node) {
  graph_.nodes.push_back(std::move(node));
  return {};
}

Status Lowering::keep_narrowed(Node node, std::size_t output, DType wanted) {
  const auto wide = fresh(node, "indices", DType::i64);
  const auto result = std::exchange(node.outputs[output], wide);
  const Node near{.name = node.name};
  FLEETFIT_TRY(keep(std::move(node)));
  emit(near, "narrow", Cast{wanted}, {wide}, result);
  return {};
}

}  // namespace fleetfit::graph::onnx_format
