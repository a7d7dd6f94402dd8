#include <algorithm>
#include <cmath>
#include <functional>

#include "graph/evaluate/kernels.h"
#include "graph/operands.h"

namespace fleetfit::graph::interpreter {
namespace {

template <class T>
constexpr bool kReal = std::is_floating_point_v<T>;

/// Calls `visit` with a zero of the type that operands of `type` are computed in.
template <class Visit>
decltype(auto) with_arithmetic(DType type, Visit&& visit) {
  if (is_float(type)) return visit(double{});
  if (type == DType::u64) return visit(std::uint64_t{});
  return visit(std::int64_t{});
}

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
      return convert<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
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

bool divides(ElementwiseKind kind) {
  return kind == ElementwiseKind::div || kind == ElementwiseKind::mod;
}

template <class T>
Result<std::vector<T>> operand(const Call& call, std::size_t i) {
  FLEETFIT_ASSIGN(auto full, broadcast(call.input(i), call.result().shape));
  return read<T>(full);
}

template <class T>
Values combine_all(ElementwiseKind kind, const Call& call) {
  FLEETFIT_ASSIGN(auto result, operand<T>(call, 0));
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    FLEETFIT_ASSIGN(const auto next, operand<T>(call, i));
    if (!kReal<T> && divides(kind) && std::find(next.begin(), next.end(), 0) != next.end()) {
      return misfit("division by zero");
    }
    for (std::size_t j = 0; j < next.size(); ++j) {
      result[j] = combine(kind, result[j], next[j]);
    }
  }
  if (kind == ElementwiseKind::mean) {
    const auto count = static_cast<T>(call.inputs.size());
    for (auto& sum : result) sum = divide(sum, count);
  }
  return one(write(call.result(), result));
}

/// The type to compute in: that of the operands, of which a power may have two.
DType arithmetic_type(const Call& call) {
  for (const auto* input : call.inputs) {
    if (is_float(input->dtype)) return input->dtype;
  }
  return call.input(0).dtype;
}

template <class T>
T unary(UnaryKind kind, T x) {
  switch (kind) {
    case UnaryKind::abs:
      return x < T{0} ? subtract(T{0}, x) : (x == T{0} ? T{0} : x);
    case UnaryKind::neg:
      return kReal<T> ? multiply(static_cast<T>(-1), x) : subtract(T{0}, x);
    case UnaryKind::sign:
      return x != x ? x : static_cast<T>((x > T{0} ? 1 : 0) - (x < T{0} ? 1 : 0));
    case UnaryKind::logical_not:
      return x == T{0};
    case UnaryKind::square:
      return multiply(x, x);
    default:
      break;
  }
  if constexpr (kReal<T>) {
    switch (kind) {
      case UnaryKind::exp:
        return std::exp(x);
      case UnaryKind::log:
        return std::log(x);
      case UnaryKind::sqrt:
        return std::sqrt(x);
      case UnaryKind::reciprocal:
        return 1 / x;
      case UnaryKind::floor:
        return std::floor(x);
      case UnaryKind::ceil:
        return std::ceil(x);
      case UnaryKind::round:
        return std::nearbyint(x);  // halves to even, as ONNX wants
      case UnaryKind::erf:
        return std::erf(x);
      case UnaryKind::sin:
        return std::sin(x);
      case UnaryKind::cos:
        return std::cos(x);
      case UnaryKind::rsqrt:
        return 1 / std::sqrt(x);
      default:
        break;
    }
  }
  return x;
}

bool needs_reals(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::exp:
    case UnaryKind::log:
    case UnaryKind::sqrt:
    case UnaryKind::reciprocal:
    case UnaryKind::erf:
    case UnaryKind::sin:
    case UnaryKind::cos:
    case UnaryKind::rsqrt:
      return true;
    default:
      return false;
  }
}

}  // namespace

Values run(const Unary& op, const Call& call) {
  const auto& x = call.input(0);
  if (needs_reals(op.kind) && !is_float(x.dtype)) {
    return misfit("the function is not defined for {}", to_string(x.dtype));
  }
  return with_arithmetic(x.dtype, [&]<class T>(T) {
    auto numbers = read<T>(x);
    for (auto& number : numbers) number = unary(op.kind, number);
    return one(write(call.result(), numbers));
  });
}

Values run(const Elementwise& op, const Call& call) {
  for (const auto* input : call.inputs) {
    if (input == nullptr) return misfit("an operand is missing");
  }
  return with_arithmetic(arithmetic_type(call),
                         [&]<class T>(T) { return combine_all<T>(op.kind, call); });
}

}  // namespace fleetfit::graph::interpreter
