#pragma once

#include <cstdint>
#include <string_view>

#include "fleetfit/graph/operators/operator_list.h"

namespace fleetfit::graph {

enum class ActivationKind : std::uint8_t {
  none,
  relu,
  clip,        ///< between alpha and beta; ReLU6 is clip(0, 6)
  leaky_relu,  ///< slope alpha below zero
  elu,         ///< alpha
  sigmoid,
  hard_sigmoid,  ///< max(0, min(1, alpha * x + beta))
  tanh,
  hard_swish,
  silu,
  gelu,       ///< with the error function
  gelu_tanh,  ///< the approximation with tanh
  softplus,
  softsign,
  selu,  ///< beta times ELU with alpha
  mish,
};

/// An element-wise function of one tensor.
struct Activation {
  ActivationKind kind = ActivationKind::none;
  float alpha = 0;
  float beta = 0;

  bool operator==(const Activation&) const = default;
  explicit operator bool() const { return kind != ActivationKind::none; }
};

/// The name of an activation: "Relu", "Clip", "Silu", …; "" for none.
std::string_view type_name(ActivationKind kind);

inline constexpr Activation kRelu{ActivationKind::relu};
inline constexpr Activation kRelu6{ActivationKind::clip, 0, 6};
inline constexpr Activation kSigmoid{ActivationKind::sigmoid};
inline constexpr Activation kHardSigmoid{ActivationKind::hard_sigmoid, 1.0F / 6.0F, 0.5F};
inline constexpr Activation kHardSwish{ActivationKind::hard_swish};
inline constexpr Activation kTanh{ActivationKind::tanh};
inline constexpr Activation kSilu{ActivationKind::silu};
inline constexpr Activation kGelu{ActivationKind::gelu};
inline constexpr Activation kSelu{ActivationKind::selu, 1.67326319217681884765625F,
                                  1.05070102214813232421875F};

/// An activation as a node of its own.
struct Activate {
  Activation function;
};

/// Inputs: x, slope.
struct PRelu {};

using ActivationOperators = OperatorList<Activate, PRelu>;

}  // namespace fleetfit::graph
