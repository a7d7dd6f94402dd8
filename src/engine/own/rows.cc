#include "engine/own/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/own/functions.h"
#include "fleetfit/core/vectorize.h"

namespace fleetfit::engine::own {
namespace {

using graph::Activation;
using graph::ActivationKind;
using graph::ElementwiseKind;
using graph::ReduceKind;
using graph::UnaryKind;

/// Partial results that are worked on side by side: a sum of floats in order cannot be.
constexpr std::int64_t kLanes = 16;

template <class Function>
FLEETFIT_INLINE void map(const float* x, float* out, std::int64_t count, const Function& function) {
  FLEETFIT_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) out[i] = function(x[i]);
}

template <class Out, class Function>
FLEETFIT_INLINE void zip_row(const FloatRows& a, const FloatRows& b, Out* out, std::int64_t count,
                             const Function& function) {
  if (a.step == 1 && b.step == 1) {
    FLEETFIT_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i)
      out[i] = static_cast<Out>(function(a.data[i], b.data[i]));
  } else if (a.step == 1 && b.step == 0) {
    const float right = *b.data;
    FLEETFIT_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(function(a.data[i], right));
  } else if (a.step == 0 && b.step == 1) {
    const float left = *a.data;
    FLEETFIT_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(function(left, b.data[i]));
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<Out>(function(a.data[i * a.step], b.data[i * b.step]));
    }
  }
}

template <class Out, class Function>
FLEETFIT_INLINE void zip(FloatRows a, FloatRows b, Out* out, const Extents& extents,
                         const Function& function) {
  const std::int64_t count = extents.count;
  for (std::int64_t row = 0; row < extents.rows; ++row) {
    zip_row(a, b, out, count, function);
    a.data += a.row_step;
    b.data += b.row_step;
    out += count;
  }
}

/// NaN wins.
FLEETFIT_INLINE float smaller(float a, float b) {
  const float lower = a < b ? a : b;
  return a != a ? a : lower;
}
FLEETFIT_INLINE float larger(float a, float b) {
  const float higher = a > b ? a : b;
  return a != a ? a : higher;
}

template <class Step, class Join>
FLEETFIT_INLINE float reduce(const float* x, std::int64_t count, float start, const Step& step,
                             const Join& join) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = start;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] = step(lanes[j], x[i + j]);
  }
  for (std::int64_t j = 0; i < count; ++i, ++j) lanes[j] = step(lanes[j], x[i]);
  for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int64_t j = 0; j < width; ++j) lanes[j] = join(lanes[j], lanes[j + width]);
  }
  return lanes[0];
}

FLEETFIT_INLINE void highest_of_columns(const Columns& columns, const float* x, float* highest) {
  const auto [extent, stride, width] = columns;
  for (std::int64_t j = 0; j < width; ++j) highest[j] = x[j];
  for (std::int64_t k = 1; k < extent; ++k) {
    for (std::int64_t j = 0; j < width; ++j) highest[j] = larger(x[k * stride + j], highest[j]);
  }
}

}  // namespace

FLEETFIT_VECTORIZE void activate_row(const Activation& activation, const float* x, float* out,
                                     std::int64_t count) {
  const float alpha = activation.alpha;
  const float beta = activation.beta;
  switch (activation.kind) {
    case ActivationKind::none:
      if (out != x) std::memcpy(out, x, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case ActivationKind::relu:
      return map(x, out, count, [](float v) { return v < 0 ? 0 : v; });
    case ActivationKind::clip:
      return map(x, out, count, [=](float v) { return clipped(v, alpha, beta); });
    case ActivationKind::leaky_relu:
      return map(x, out, count, [=](float v) { return v < 0 ? alpha * v : v; });
    case ActivationKind::elu:
      return map(x, out, count, [=](float v) {
        const float below = alpha * exponential_minus_one(v);
        return v < 0 ? below : v;
      });
    case ActivationKind::sigmoid:
      return map(x, out, count, [](float v) { return sigmoid(v); });
    case ActivationKind::hard_sigmoid:
      return map(x, out, count, [=](float v) { return clipped(alpha * v + beta, 0.0F, 1.0F); });
    case ActivationKind::tanh:
      return map(x, out, count, [](float v) { return hyperbolic_tangent(v); });
    case ActivationKind::hard_swish:
      return map(x, out, count,
                 [](float v) { return v * clipped(v * (1.0F / 6.0F) + 0.5F, 0.0F, 1.0F); });
    case ActivationKind::silu:
      return map(x, out, count, [](float v) { return v * sigmoid(v); });
    case ActivationKind::gelu:
      return map(x, out, count, [](float v) {
        return 0.5F * v * (1.0F + error_function(v * 0.707106781186547524F));
      });
    case ActivationKind::gelu_tanh:
      return map(x, out, count, [](float v) {
        const float inner = 0.797884560802865356F * (v + 0.044715F * v * v * v);
        return 0.5F * v * (1.0F + hyperbolic_tangent(inner));
      });
    case ActivationKind::softplus:
      return map(x, out, count, [](float v) { return softplus(v); });
    case ActivationKind::softsign:
      return map(x, out, count, [](float v) { return v / (1.0F + std::fabs(v)); });
    case ActivationKind::selu:
      return map(x, out, count, [=](float v) {
        const float below = alpha * exponential_minus_one(v);
        return beta * (v < 0 ? below : v);
      });
    case ActivationKind::mish:
      return map(x, out, count, [](float v) { return mish(v); });
  }
}

FLEETFIT_VECTORIZE void unary_row(UnaryKind kind, const float* x, float* out, std::int64_t count) {
  switch (kind) {
    case UnaryKind::abs:
      return map(x, out, count, [](float v) { return std::fabs(v); });
    case UnaryKind::neg:
      return map(x, out, count, [](float v) { return -v; });
    case UnaryKind::exp:
      return map(x, out, count, [](float v) { return exponential(v); });
    case UnaryKind::sqrt:
      return map(x, out, count, [](float v) { return std::sqrt(v); });
    case UnaryKind::reciprocal:
      return map(x, out, count, [](float v) { return 1.0F / v; });
    case UnaryKind::rsqrt:
      return map(x, out, count, [](float v) { return 1.0F / std::sqrt(v); });
    case UnaryKind::floor:
      return map(x, out, count, [](float v) { return std::floor(v); });
    case UnaryKind::ceil:
      return map(x, out, count, [](float v) { return std::ceil(v); });
    case UnaryKind::round:
      return map(x, out, count, [](float v) { return std::nearbyint(v); });
    case UnaryKind::erf:
      return map(x, out, count, [](float v) { return error_function(v); });
    case UnaryKind::sign:
      return map(x, out, count, [](float v) {
        const float sign = (v > 0 ? 1.0F : 0.0F) - (v < 0 ? 1.0F : 0.0F);
        return v != v ? v : sign;
      });
    case UnaryKind::square:
      return map(x, out, count, [](float v) { return v * v; });
    case UnaryKind::logical_not:
      return map(x, out, count, [](float v) { return v == 0 ? 1.0F : 0.0F; });
    case UnaryKind::log:
      return map(x, out, count, [](float v) { return std::log(v); });
    case UnaryKind::sin:
      return map(x, out, count, [](float v) { return std::sin(v); });
    case UnaryKind::cos:
      return map(x, out, count, [](float v) { return std::cos(v); });
  }
}

bool has_fast_combination(ElementwiseKind kind) {
  switch (kind) {
    case ElementwiseKind::add:
    case ElementwiseKind::sum:
    case ElementwiseKind::mean:
    case ElementwiseKind::sub:
    case ElementwiseKind::mul:
    case ElementwiseKind::div:
    case ElementwiseKind::min:
    case ElementwiseKind::max:
    case ElementwiseKind::squared_difference:
    case ElementwiseKind::pow:
    case ElementwiseKind::mod:
      return true;
    default:
      return false;
  }
}

FLEETFIT_VECTORIZE void combine_rows(ElementwiseKind kind, const FloatRows& a, const FloatRows& b,
                                     float* out, const Extents& extents) {
  switch (kind) {
    case ElementwiseKind::add:
    case ElementwiseKind::sum:
    case ElementwiseKind::mean:
      return zip(a, b, out, extents, [](float x, float y) { return x + y; });
    case ElementwiseKind::sub:
      return zip(a, b, out, extents, [](float x, float y) { return x - y; });
    case ElementwiseKind::mul:
      return zip(a, b, out, extents, [](float x, float y) { return x * y; });
    case ElementwiseKind::div:
      return zip(a, b, out, extents, [](float x, float y) { return x / y; });
    case ElementwiseKind::min:
      return zip(a, b, out, extents, [](float x, float y) { return smaller(x, y); });
    case ElementwiseKind::max:
      return zip(a, b, out, extents, [](float x, float y) { return larger(x, y); });
    case ElementwiseKind::squared_difference:
      return zip(a, b, out, extents, [](float x, float y) { return (x - y) * (x - y); });
    case ElementwiseKind::pow:
      if (b.step == 0 && *b.data == 2.0F) {
        return zip(a, b, out, extents, [](float x, float) { return x * x; });
      }
      if (b.step == 0 && *b.data == 0.5F) {
        return zip(a, b, out, extents, [](float x, float) { return std::sqrt(x); });
      }
      return zip(a, b, out, extents, [](float x, float y) { return std::pow(x, y); });
    case ElementwiseKind::mod:
      return zip(a, b, out, extents, [](float x, float y) { return std::fmod(x, y); });
    default:
      return;
  }
}

FLEETFIT_VECTORIZE void compare_rows(ElementwiseKind kind, const FloatRows& a, const FloatRows& b,
                                     std::uint8_t* out, const Extents& extents) {
  switch (kind) {
    case ElementwiseKind::equal:
      return zip(a, b, out, extents, [](float x, float y) { return x == y ? 1 : 0; });
    case ElementwiseKind::greater:
      return zip(a, b, out, extents, [](float x, float y) { return x > y ? 1 : 0; });
    case ElementwiseKind::less:
      return zip(a, b, out, extents, [](float x, float y) { return x < y ? 1 : 0; });
    case ElementwiseKind::greater_or_equal:
      return zip(a, b, out, extents, [](float x, float y) { return x >= y ? 1 : 0; });
    case ElementwiseKind::less_or_equal:
      return zip(a, b, out, extents, [](float x, float y) { return x <= y ? 1 : 0; });
    case ElementwiseKind::logical_and:
      return zip(a, b, out, extents, [](float x, float y) { return x != 0 && y != 0 ? 1 : 0; });
    case ElementwiseKind::logical_or:
      return zip(a, b, out, extents, [](float x, float y) { return x != 0 || y != 0 ? 1 : 0; });
    case ElementwiseKind::logical_xor:
      return zip(a, b, out, extents, [](float x, float y) { return (x != 0) != (y != 0) ? 1 : 0; });
    default:
      return;
  }
}

FLEETFIT_VECTORIZE void slope_rows(const FloatRows& x, const FloatRows& slopes, float* out,
                                   const Extents& extents) {
  zip(x, slopes, out, extents, [](float v, float slope) { return v < 0 ? v * slope : v; });
}

FLEETFIT_VECTORIZE float sum_of_row(const float* x, std::int64_t count) {
  const auto add = [](float a, float b) { return a + b; };
  return reduce(x, count, 0.0F, add, add);
}

FLEETFIT_VECTORIZE float max_of_row(const float* x, std::int64_t count) {
  const auto best = [](float a, float b) { return b > a ? b : a; };
  return reduce(x, count, -std::numeric_limits<float>::infinity(), best, best);
}

FLEETFIT_VECTORIZE float squares_of_row(const float* x, float center, std::int64_t count) {
  return reduce(
      x, count, 0.0F, [=](float sum, float v) { return sum + (v - center) * (v - center); },
      [](float a, float b) { return a + b; });
}

FLEETFIT_VECTORIZE float exponentials_of_row(const float* x, float highest, float* out,
                                             std::int64_t count) {
  map(x, out, count, [=](float v) { return exponential(v - highest); });
  const auto add = [](float a, float b) { return a + b; };
  return reduce(out, count, 0.0F, add, add);
}

FLEETFIT_VECTORIZE void scale_row(const float* x, float factor, float* out, std::int64_t count) {
  map(x, out, count, [=](float v) { return v * factor; });
}

FLEETFIT_VECTORIZE void normalize_row(const float* x, float shift, float factor, float* out,
                                      std::int64_t count) {
  map(x, out, count, [=](float v) { return (v - shift) * factor; });
}

FLEETFIT_VECTORIZE void affine_row(const float* x, const float* factors, const float* offsets,
                                   float* out, std::int64_t count) {
  if (offsets == nullptr) {
    FLEETFIT_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] * factors[i];
  } else {
    FLEETFIT_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] * factors[i] + offsets[i];
  }
}

FLEETFIT_VECTORIZE void add_scaled_row(const float* x, float factor, float* sums,
                                       std::int64_t count) {
  FLEETFIT_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) sums[i] += factor * x[i];
}

FLEETFIT_VECTORIZE void affine_row(const float* x, float factor, float offset, float* out,
                                   std::int64_t count) {
  map(x, out, count, [=](float v) { return v * factor + offset; });
}

FLEETFIT_VECTORIZE void add_product_row(const float* a, const float* b, float* sums,
                                        std::int64_t count) {
  FLEETFIT_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) sums[i] += a[i] * b[i];
}

FLEETFIT_VECTORIZE void blend_rows(const float* a, float wa, const float* b, float wb, float* out,
                                   std::int64_t count) {
  FLEETFIT_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) out[i] = wa * a[i] + wb * b[i];
}

FLEETFIT_VECTORIZE void add_squares_row(const float* x, float* sums, std::int64_t count) {
  FLEETFIT_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) sums[i] += x[i] * x[i];
}

FLEETFIT_VECTORIZE void response_row(const Response& response, const float* x, const float* squares,
                                     float* out, std::int64_t count) {
  const auto [bias, alpha, beta] = response;
  if (beta == 0.75F) {  // the usual one, by roots
    FLEETFIT_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) {
      const float root = std::sqrt(bias + alpha * squares[i]);
      out[i] = x[i] / (root * std::sqrt(root));
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = x[i] / std::pow(bias + alpha * squares[i], beta);
  }
}

FLEETFIT_VECTORIZE float reduce_row(ReduceKind kind, const float* x, std::int64_t count) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto add = [](float a, float b) { return a + b; };
  switch (kind) {
    case ReduceKind::mean:
    case ReduceKind::sum:
    case ReduceKind::log_sum:
    case ReduceKind::log_sum_exp:
      return reduce(x, count, 0.0F, add, add);
    case ReduceKind::max: {
      const auto best = [](float a, float b) { return larger(b, a); };
      return reduce(x, count, -kInfinity, best, best);
    }
    case ReduceKind::min: {
      const auto best = [](float a, float b) { return smaller(b, a); };
      return reduce(x, count, kInfinity, best, best);
    }
    case ReduceKind::prod: {
      const auto multiply = [](float a, float b) { return a * b; };
      return reduce(x, count, 1.0F, multiply, multiply);
    }
    case ReduceKind::l1: {
      const auto add_magnitude = [](float sum, float v) { return sum + std::fabs(v); };
      return reduce(x, count, 0.0F, add_magnitude, add);
    }
    case ReduceKind::l2:
    case ReduceKind::sum_square: {
      const auto add_square = [](float sum, float v) { return sum + v * v; };
      return reduce(x, count, 0.0F, add_square, add);
    }
  }
  return 0;
}

FLEETFIT_VECTORIZE void start_reduction(ReduceKind kind, const float* x, float* out,
                                        std::int64_t count) {
  switch (kind) {
    case ReduceKind::l1:
      return map(x, out, count, [](float v) { return std::fabs(v); });
    case ReduceKind::l2:
    case ReduceKind::sum_square:
      return map(x, out, count, [](float v) { return v * v; });
    default:
      return map(x, out, count, [](float v) { return v; });
  }
}

FLEETFIT_VECTORIZE void continue_reduction(ReduceKind kind, const float* x, float* out,
                                           std::int64_t count) {
  const FloatRows rows{x, 1, 0};
  const FloatRows sums{out, 1, 0};
  const Extents extents{1, count};
  switch (kind) {
    case ReduceKind::mean:
    case ReduceKind::sum:
    case ReduceKind::log_sum:
    case ReduceKind::log_sum_exp:
      return zip(rows, sums, out, extents, [](float v, float sum) { return sum + v; });
    case ReduceKind::max:
      return zip(rows, sums, out, extents, [](float v, float best) { return larger(v, best); });
    case ReduceKind::min:
      return zip(rows, sums, out, extents, [](float v, float best) { return smaller(v, best); });
    case ReduceKind::prod:
      return zip(rows, sums, out, extents, [](float v, float product) { return v * product; });
    case ReduceKind::l1:
      return zip(rows, sums, out, extents, [](float v, float sum) { return sum + std::fabs(v); });
    case ReduceKind::l2:
    case ReduceKind::sum_square:
      return zip(rows, sums, out, extents, [](float v, float sum) { return sum + v * v; });
  }
}

FLEETFIT_VECTORIZE void softmax_columns(const Columns& columns, const float* x, float* out) {
  const auto [extent, stride, width] = columns;
  float highest[kMostColumns];
  float sums[kMostColumns] = {};
  highest_of_columns(columns, x, highest);
  for (std::int64_t k = 0; k < extent; ++k) {
    FLEETFIT_INDEPENDENT
    for (std::int64_t j = 0; j < width; ++j) {
      const float e = exponential(x[k * stride + j] - highest[j]);
      out[k * stride + j] = e;
      sums[j] += e;
    }
  }
  for (std::int64_t j = 0; j < width; ++j) sums[j] = 1.0F / sums[j];
  for (std::int64_t k = 0; k < extent; ++k) {
    for (std::int64_t j = 0; j < width; ++j) out[k * stride + j] *= sums[j];
  }
}

FLEETFIT_VECTORIZE void log_softmax_columns(const Columns& columns, const float* x, float* out) {
  const auto [extent, stride, width] = columns;
  float highest[kMostColumns];
  float sums[kMostColumns] = {};
  highest_of_columns(columns, x, highest);
  for (std::int64_t k = 0; k < extent; ++k) {
    for (std::int64_t j = 0; j < width; ++j) sums[j] += exponential(x[k * stride + j] - highest[j]);
  }
  for (std::int64_t j = 0; j < width; ++j) highest[j] += std::log(sums[j]);
  for (std::int64_t k = 0; k < extent; ++k) {
    for (std::int64_t j = 0; j < width; ++j) out[k * stride + j] = x[k * stride + j] - highest[j];
  }
}

FLEETFIT_VECTORIZE void max_rows(const float* x, float* best, std::int64_t count) {
  FLEETFIT_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) best[i] = larger(x[i], best[i]);
}

}  // namespace fleetfit::engine::own
