#pragma once

#include <variant>

#include "fleetfit/graph/operators.h"

namespace fleetfit::graph {

template <class... Ops>
bool is_one_of(const Operator& op) {
  return (std::holds_alternative<Ops>(op) || ...);
}

}  // namespace fleetfit::graph
