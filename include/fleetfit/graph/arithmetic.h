#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "fleetfit/graph/operators.h"

/// What the interpreter makes of single numbers, for kernels that are to give the same.
namespace fleetfit::graph::interpreter {

/// A truth value as it is stored.
struct Truth {
  std::uint8_t byte;
};

/// The whole number at or next to `value` towards zero; the nearest that fits if it is out of
/// range; 0 for NaN.
template <class To>
To truncate(double value) {
  // 2^(bits) is exact in a double where the largest whole number itself is not.
  constexpr double kAbove =
      2.0 * static_cast<double>(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1));
  if (std::isnan(value)) return 0;
  if (value >= kAbove) return std::numeric_limits<To>::max();
  if (value <= static_cast<double>(std::numeric_limits<To>::min())) {
    return std::numeric_limits<To>::min();
  }
  return static_cast<To>(value);
}

/// One number in another type: floats become whole numbers by `truncate`, whole numbers that do not
/// fit wrap around, anything but zero is true.
template <class To, class From>
To convert_plain(From from) {
  if constexpr (std::is_same_v<From, Truth>) {
    return convert_plain<To>(from.byte != 0 ? 1 : 0);
  } else if constexpr (std::is_same_v<To, Truth>) {
    return Truth{static_cast<std::uint8_t>(from != 0 ? 1 : 0)};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return truncate<To>(static_cast<double>(from));
  } else {
    return static_cast<To>(from);
  }
}

template <class T>
constexpr bool kReal = std::is_floating_point_v<T>;

// Whole numbers wrap around, which only unsigned arithmetic may do.
template <class T>
using Wrapping = std::conditional_t<kReal<T>, T, std::uint64_t>;

template <class T>
T add(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}

template <class T>
T subtract(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}

template <class T>
T multiply(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}

/// Whole numbers: towards zero. `b` is not a whole 0.
template <class T>
T divide(T a, T b) {
  if constexpr (std::is_signed_v<T> && !kReal<T>) {
    if (b == -1) return subtract(T{0}, a);  // the lowest number has no opposite
  }
  return a / b;
}

/// Whole numbers: with the sign of `b`; floats: with the sign of `a`. `b` is not a whole 0.
template <class T>
T modulo(T a, T b) {
  if constexpr (kReal<T>) {
    return std::fmod(a, b);
  } else if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
    const T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  } else {
    return a % b;
  }
}

template <class T>
T power(T base, T exponent) {
  if constexpr (kReal<T>) {
    return std::pow(base, exponent);
  } else {
    if (exponent < T{0}) {
      return truncate<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
    T result = 1;
    for (; exponent > 0; exponent /= 2) {
      if (exponent % 2 != 0) result = multiply(result, base);
      base = multiply(base, base);
    }
    return result;
  }
}

/// NaN wins.
template <class T>
T extreme(T a, T b, bool smaller) {
  if (a != a) return a;
  return (smaller ? a < b : b < a) ? a : b;
}

/// `b` is not a whole 0 where `kind` divides.
template <class T>
T combine(ElementwiseKind kind, T a, T b) {
  switch (kind) {
    case ElementwiseKind::add:
    case ElementwiseKind::sum:
    case ElementwiseKind::mean:
      return add(a, b);
    case ElementwiseKind::sub:
      return subtract(a, b);
    case ElementwiseKind::mul:
      return multiply(a, b);
    case ElementwiseKind::div:
      return divide(a, b);
    case ElementwiseKind::pow:
      return power(a, b);
    case ElementwiseKind::mod:
      return modulo(a, b);
    case ElementwiseKind::min:
      return extreme(a, b, true);
    case ElementwiseKind::max:
      return extreme(a, b, false);
    case ElementwiseKind::equal:
      return a == b;
    case ElementwiseKind::greater:
      return a > b;
    case ElementwiseKind::less:
      return a < b;
    case ElementwiseKind::greater_or_equal:
      return a >= b;
    case ElementwiseKind::less_or_equal:
      return a <= b;
    case ElementwiseKind::logical_and:
      return a != 0 && b != 0;
    case ElementwiseKind::logical_or:
      return a != 0 || b != 0;
    case ElementwiseKind::logical_xor:
      return (a != 0) != (b != 0);
    case ElementwiseKind::squared_difference:
      return multiply(subtract(a, b), subtract(a, b));
  }
  return a;
}

constexpr bool divides(ElementwiseKind kind) {
  return kind == ElementwiseKind::div || kind == ElementwiseKind::mod;
}

}  // namespace fleetfit::graph::interpreter
