#pragma once

#include <cstdint>

namespace fleetfit::graph::interpreter {

/// How a 16-bit float is laid out: a sign, the exponent, the fraction.
struct HalfFormat {
  int exponent_bits = 5;
  int fraction_bits = 10;
};
inline constexpr HalfFormat kIeeeHalf{5, 10};
inline constexpr HalfFormat kBrainFloat{8, 7};

/// The bits of the number nearest to `value`, ties to even; infinity beyond the largest.
std::uint16_t encode_half(double value, HalfFormat format);

/// Exact.
double decode_half(std::uint16_t bits, HalfFormat format);

}  // namespace fleetfit::graph::interpreter
