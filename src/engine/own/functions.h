#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "fleetfit/core/vectorize.h"

/// Functions of one float, without branches or calls, so that a loop over them becomes vector
/// instructions. Within a few units in the last place of the exact value.
namespace fleetfit::engine::own {

/// NaN passes through.
FLEETFIT_INLINE float clipped(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

/// Adding this to a small number rounds it to a whole one, ties to even, which then stands in the
/// lowest bits.
inline constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23

/// e^x = 2^whole * (1 + rest).
struct SplitExponential {
  std::int32_t whole;
  float rest;
};

FLEETFIT_INLINE SplitExponential split_exponential(float x) {
  constexpr float kLog2E = std::numbers::log2e_v<float>;
  // ln(2) in two parts, of which the first has few bits, so that products with it are exact.
  constexpr float kLn2High = 355.0F / 512.0F;
  constexpr float kLn2Low = -2.12194440e-4F;
  const float shifted = x * kLog2E + kRounder;
  const float n = shifted - kRounder;
  const float r = (x - n * kLn2High) - n * kLn2Low;  // at most ln(2) / 2
  // The terms of e^r - 1 - r up to r^7 / 7!.
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  return {std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRounder),
          r + r * r * p};
}

/// 2^n for n from -126 to 127.
FLEETFIT_INLINE float power_of_two(std::int32_t n) { return std::bit_cast<float>((n + 127) << 23); }

FLEETFIT_INLINE float exponential(float x) {
  const auto [whole, rest] = split_exponential(clipped(x, -104.0F, 89.0F));
  // In two steps, since 2^128 and 2^-140 are no floats.
  const std::int32_t half = whole >> 1;
  return (1.0F + rest) * power_of_two(half) * power_of_two(whole - half);
}

/// e^x - 1, exact near zero. For x up to 88.
FLEETFIT_INLINE float exponential_minus_one(float x) {
  const auto [whole, rest] = split_exponential(clipped(x, -20.0F, 88.0F));
  const float power = power_of_two(whole);
  return power * rest + (power - 1.0F);
}

/// log(1 + x) for x from 0 to 1.
FLEETFIT_INLINE float log_one_plus_small(float x) {
  // 2 * artanh(z), terms up to z^13.
  const float z = x / (2.0F + x);
  const float s = z * z;
  float p = 1.0F / 13;
  p = p * s + 1.0F / 11;
  p = p * s + 1.0F / 9;
  p = p * s + 1.0F / 7;
  p = p * s + 1.0F / 5;
  p = p * s + 1.0F / 3;
  return 2.0F * (z + z * s * p);
}

FLEETFIT_INLINE float sigmoid(float x) { return 1.0F / (1.0F + exponential(-x)); }

FLEETFIT_INLINE float hyperbolic_tangent(float x) {
  const float magnitude = clipped(std::fabs(x), 0.0F, 10.0F);  // 1 from there on
  const float e = exponential_minus_one(2.0F * magnitude);
  return std::copysign(e / (e + 2.0F), x);
}

FLEETFIT_INLINE float error_function(float x) {
  constexpr float kTwoOverRootPi = 1.12837916709551257F;
  const float a = std::fabs(x);
  // Near zero the Taylor series up to x^19.
  const float s = a * a;
  float p = -1.0F / (19.0F * 362880.0F);
  p = p * s + 1.0F / (17.0F * 40320.0F);
  p = p * s - 1.0F / (15.0F * 5040.0F);
  p = p * s + 1.0F / (13.0F * 720.0F);
  p = p * s - 1.0F / (11.0F * 120.0F);
  p = p * s + 1.0F / (9.0F * 24.0F);
  p = p * s - 1.0F / (7.0F * 6.0F);
  p = p * s + 1.0F / (5.0F * 2.0F);
  p = p * s - 1.0F / 3.0F;
  const float near = kTwoOverRootPi * (a + a * s * p);
  // Elsewhere formula 7.1.26 of Abramowitz and Stegun, wrong by at most 1.5e-7.
  const float t = 1.0F / (1.0F + 0.3275911F * a);
  float q = 1.061405429F;
  q = q * t - 1.453152027F;
  q = q * t + 1.421413741F;
  q = q * t - 0.284496736F;
  q = q * t + 0.254829592F;
  const float far = 1.0F - q * t * exponential(-s);
  return std::copysign(a < 1.0F ? near : far, x);
}

FLEETFIT_INLINE float softplus(float x) {
  return log_one_plus_small(exponential(-std::fabs(x))) + (x < 0 ? 0 : x);
}

/// tanh(softplus(x)) with the logarithm worked out.
FLEETFIT_INLINE float mish(float x) {
  const float e = exponential(x > 20.0F ? 20.0F : x);
  const float n = e * (e + 2.0F);
  return x * (n / (n + 2.0F));
}

}  // namespace fleetfit::engine::own
