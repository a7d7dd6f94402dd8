#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "graph/ncnn/layers.h"

namespace fleetfit::graph::ncnn {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

bool is_near(float value, float expected) {
  return std::abs(value - expected) <= 1e-3F * std::abs(expected);
}

void activate(Conversion& c, const Activation& function) {
  const auto blob = c.blob(0);
  output_like(c, c.add(Activate{function}, {blob.tensor}), blob);
}

template <ActivationKind kind>
void plain(Conversion& c) {
  activate(c, {kind});
}

void relu(Conversion& c) {
  const auto slope = c.params().number(0, "slope", 0);
  activate(c, slope == 0 ? kRelu : Activation{ActivationKind::leaky_relu, slope});
}

void clip(Conversion& c) {
  activate(c, {ActivationKind::clip, c.params().number(0, "min", -kLargest),
               c.params().number(1, "max", kLargest)});
}

void elu(Conversion& c) { activate(c, {ActivationKind::elu, c.params().number(0, "alpha", 0.1F)}); }

void selu(Conversion& c) {
  const auto alpha = c.params().number(0, "alpha", 1.67326324F);
  const auto lambda = c.params().number(1, "lambda", 1.050700987F);
  if (is_near(alpha, 1.67326324F) && is_near(lambda, 1.050700987F)) return activate(c, kSelu);
  const auto blob = c.blob(0);
  const auto y = c.add(Activate{{ActivationKind::elu, alpha}}, {blob.tensor});
  output_like(
      c, c.add(Elementwise{.kind = ElementwiseKind::mul}, {y, c.scalar("lambda", lambda)}, "scale"),
      blob);
}

void gelu(Conversion& c) {
  const bool fast = c.params().flag(0, "fast_gelu");
  activate(c, {fast ? ActivationKind::gelu_tanh : ActivationKind::gelu});
}

void hard_sigmoid(Conversion& c) {
  activate(c, {ActivationKind::hard_sigmoid, c.params().number(0, "alpha", 0.2F),
               c.params().number(1, "beta", 0.5F)});
}

void hard_swish_layer(Conversion& c) {
  const auto alpha = c.params().number(0, "alpha", 0.2F);
  const auto beta = c.params().number(1, "beta", 0.5F);
  const auto blob = c.blob(0);
  output_like(c, hard_swish(c, blob.tensor, alpha, beta), blob);
}

bool is_usual_hard_swish(float alpha, float beta) {
  return is_near(alpha, 1.0F / 6) && is_near(beta, 0.5F);
}

/// The value of an activation's parameter that convolutions keep in a list.
float fused_number(const std::vector<double>& numbers, std::size_t i, float fallback) {
  return i < numbers.size() ? static_cast<float>(numbers[i]) : fallback;
}

constexpr std::array<LayerType, 13> kLayers = {{
    {"ReLU", relu},
    {"Clip", clip},
    {"ELU", elu},
    {"SELU", selu},
    {"GELU", gelu},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", hard_swish_layer},
    {"Swish", plain<ActivationKind::silu>},
    {"Mish", plain<ActivationKind::mish>},
    {"Sigmoid", plain<ActivationKind::sigmoid>},
    {"TanH", plain<ActivationKind::tanh>},
    {"Softplus", plain<ActivationKind::softplus>},
    {"BNLL", plain<ActivationKind::softplus>},
}};

}  // namespace

TensorId hard_swish(Conversion& c, TensorId x, float alpha, float beta) {
  if (is_usual_hard_swish(alpha, beta)) return c.add(Activate{kHardSwish}, {x});
  const auto gate = c.add(Activate{{ActivationKind::hard_sigmoid, alpha, beta}}, {x}, "gate");
  return c.add(Elementwise{.kind = ElementwiseKind::mul}, {x, gate}, "gated");
}

TensorId fused_activation(Conversion& c, TensorId x) {
  const auto kind = c.params().integer({.id = 9, .name = "activation_type"});
  const auto numbers = c.params().numbers(10);
  const auto number = [&](std::size_t i, float fallback) {
    return fused_number(numbers, i, fallback);
  };
  switch (kind) {
    case 0:
      return x;
    case 1:
      c.activate_last(kRelu);
      return x;
    case 2:
      c.activate_last({ActivationKind::leaky_relu, number(0, 0)});
      return x;
    case 3:
      c.activate_last({ActivationKind::clip, number(0, -kLargest), number(1, kLargest)});
      return x;
    case 4:
      c.activate_last(kSigmoid);
      return x;
    case 5:
      c.activate_last({ActivationKind::mish});
      return x;
    case 6:
      if (is_usual_hard_swish(number(0, 0), number(1, 0))) {
        c.activate_last(kHardSwish);
        return x;
      }
      return hard_swish(c, x, number(0, 0), number(1, 0));
    default:
      c.fail(fmt::format("activation_type {} is not known", kind));
      return x;
  }
}

std::span<const LayerType> activation_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn
