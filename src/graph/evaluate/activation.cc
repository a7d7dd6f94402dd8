#include <algorithm>
#include <cmath>
#include <numbers>

#include "graph/evaluate/kernels.h"

namespace fleetfit::graph::interpreter {
namespace {

/// NaN passes through, unlike with std::clamp's opposite comparisons.
double clip(double x, double low, double high) {
  if (x < low) x = low;
  return x > high ? high : x;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// log(1 + e^x) without overflow.
double softplus(double x) { return std::log1p(std::exp(-std::abs(x))) + (x < 0 ? 0 : x); }

double gelu_tanh(double x) {
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

}  // namespace

double apply(const Activation& activation, double x) {
  const double alpha = activation.alpha;
  const double beta = activation.beta;
  switch (activation.kind) {
    case ActivationKind::none:
      return x;
    case ActivationKind::relu:
      return x < 0 ? 0 : x;
    case ActivationKind::clip:
      return clip(x, alpha, beta);
    case ActivationKind::leaky_relu:
      return x < 0 ? alpha * x : x;
    case ActivationKind::elu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case ActivationKind::sigmoid:
      return sigmoid(x);
    case ActivationKind::hard_sigmoid:
      return clip(alpha * x + beta, 0, 1);
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::hard_swish:
      return x * clip(x / 6 + 0.5, 0, 1);
    case ActivationKind::silu:
      return x * sigmoid(x);
    case ActivationKind::gelu:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case ActivationKind::gelu_tanh:
      return gelu_tanh(x);
    case ActivationKind::softplus:
      return softplus(x);
    case ActivationKind::softsign:
      return x / (1 + std::abs(x));
    case ActivationKind::selu:
      return beta * (x < 0 ? alpha * std::expm1(x) : x);
    case ActivationKind::mish:
      return x * std::tanh(softplus(x));
  }
  return x;
}

Value activate(const Value& x, const Activation& activation) {
  if (!activation) return x;
  const Form form{x.dtype, x.shape};
  if (is_float(x.dtype)) {
    auto numbers = read<double>(x);
    for (auto& number : numbers) number = apply(activation, number);
    return write(form, numbers);
  }
  auto numbers = read<std::int64_t>(x);
  for (auto& number : numbers) {
    // What the function leaves alone stays exact, even where a double is not.
    const auto before = static_cast<double>(number);
    const auto after = apply(activation, before);
    if (after != before) number = truncate<std::int64_t>(after);
  }
  return write(form, numbers);
}

Values run(const Activate& op, const Call& call) {
  return one(activate(call.input(0), op.function));
}

}  // namespace fleetfit::graph::interpreter
