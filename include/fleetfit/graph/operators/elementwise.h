#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"

namespace fleetfit::graph {

enum class UnaryKind : std::uint8_t {
  abs,
  neg,
  exp,
  log,
  sqrt,
  reciprocal,
  floor,
  ceil,
  round,
  erf,
  sin,
  cos,
  sign,
  logical_not,
  square,
  rsqrt,  // TFLite's; exported as Mul and Sqrt + Reciprocal
};

struct Unary {
  UnaryKind kind = UnaryKind::abs;
};

enum class ElementwiseKind : std::uint8_t {
  add,
  sub,
  mul,
  div,
  pow,
  mod,
  min,
  max,
  sum,
  mean,
  equal,
  greater,
  less,
  greater_or_equal,
  less_or_equal,
  logical_and,
  logical_or,
  logical_xor,
  squared_difference,  // TFLite's; exported as Sub and Mul
};

/// Two inputs with numpy's broadcasting; min, max, sum and mean take any number.
struct Elementwise {
  ElementwiseKind kind = ElementwiseKind::add;
};

/// Which elements are no numbers: truth values of floats.
struct IsNaN {};

using ElementwiseOperators = OperatorList<Unary, Elementwise, IsNaN>;

}  // namespace fleetfit::graph
