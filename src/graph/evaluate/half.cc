#include "graph/evaluate/half.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fleetfit::graph::interpreter {
namespace {

int bias(HalfFormat format) { return (1 << (format.exponent_bits - 1)) - 1; }

int infinity_bits(HalfFormat format) {
  return ((1 << format.exponent_bits) - 1) << format.fraction_bits;
}

int magnitude_bits(double magnitude, HalfFormat format) {
  const int infinity = infinity_bits(format);
  if (std::isnan(magnitude)) return infinity | (1 << (format.fraction_bits - 1));
  if (std::isinf(magnitude)) return infinity;
  const int lowest = 1 - bias(format);
  const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), lowest) : lowest;
  const auto steps = std::lrint(std::ldexp(magnitude, format.fraction_bits - exponent));
  // `steps` holds the leading one of a normal number, which adds one to the exponent, and carries
  // into it when the fraction rounds up to the next power of two.
  const auto bits = ((exponent + bias(format) - 1) << format.fraction_bits) + steps;
  return static_cast<int>(std::min<long>(bits, infinity));
}

}  // namespace

std::uint16_t encode_half(double value, HalfFormat format) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  return static_cast<std::uint16_t>(sign | magnitude_bits(std::abs(value), format));
}

double decode_half(std::uint16_t bits, HalfFormat format) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits & 0x7fff) >> format.fraction_bits;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  if (exponent == (1 << format.exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const int leading = exponent == 0 ? 0 : 1 << format.fraction_bits;
  return sign * std::ldexp(leading + fraction,
                           std::max(exponent, 1) - bias(format) - format.fraction_bits);
}

}  // namespace fleetfit::graph::interpreter
