#pragma once

#include <cstddef>
#include <tuple>

#include "fleetfit/graph/operators.h"

/// The fields of an operator, in order, for code that treats all operators alike.
namespace fleetfit::graph {

namespace detail {

template <class T>
constexpr std::size_t field_count() {
  if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}}; }) {
    return 7;
  } else if constexpr (requires { T{{}, {}, {}, {}, {}, {}}; }) {
    return 6;
  } else if constexpr (requires { T{{}, {}, {}, {}, {}}; }) {
    return 5;
  } else if constexpr (requires { T{{}, {}, {}, {}}; }) {
    return 4;
  } else if constexpr (requires { T{{}, {}, {}}; }) {
    return 3;
  } else if constexpr (requires { T{{}, {}}; }) {
    return 2;
  } else if constexpr (requires { T{{}}; }) {
    return 1;
  } else {
    return 0;
  }
}

}  // namespace detail

/// Of any struct of at most seven fields.
template <class T>
auto fields(const T& op) {
  constexpr std::size_t kCount = detail::field_count<T>();
  static_assert(
      !requires { T{{}, {}, {}, {}, {}, {}, {}, {}}; }, "more fields than are told apart");
  if constexpr (kCount == 7) {
    const auto& [a, b, c, d, e, f, g] = op;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 6) {
    const auto& [a, b, c, d, e, f] = op;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (kCount == 5) {
    const auto& [a, b, c, d, e] = op;
    return std::tie(a, b, c, d, e);
  } else if constexpr (kCount == 4) {
    const auto& [a, b, c, d] = op;
    return std::tie(a, b, c, d);
  } else if constexpr (kCount == 3) {
    const auto& [a, b, c] = op;
    return std::tie(a, b, c);
  } else if constexpr (kCount == 2) {
    const auto& [a, b] = op;
    return std::tie(a, b);
  } else if constexpr (kCount == 1) {
    const auto& [a] = op;
    return std::tie(a);
  } else {
    return std::tie();
  }
}

/// Why it is not known depends on the reader, not on the file.
inline auto fields(const Unknown& op) { return std::tie(op.domain, op.type, op.attributes); }

}  // namespace fleetfit::graph
