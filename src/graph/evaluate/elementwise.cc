#include <algorithm>
#include <cmath>
#include <functional>

#include "graph/evaluate/kernels.h"
#include "graph/operands.h"

namespace fleetfit::graph::interpreter {
namespace {

/// Calls `visit` with a zero of the type that operands of `type` are computed in.
template <class Visit>
decltype(auto) with_arithmetic(DType type, Visit&& visit) {
  if (is_float(type)) return visit(double{});
  if (type == DType::u64) return visit(std::uint64_t{});
  return visit(std::int64_t{});
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
