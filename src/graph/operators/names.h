#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

/// Names of operators that are many in one: each in the order of its enum.
namespace fleetfit::graph {

template <class Kind, std::size_t n>
std::string_view name_of_kind(const std::array<std::string_view, n>& names, Kind kind) {
  return names[static_cast<std::size_t>(kind)];
}

/// The kind of one of these names.
template <class Kind, std::size_t n>
Kind kind_of_name(const std::array<std::string_view, n>& names, std::string_view name) {
  return static_cast<Kind>(std::ranges::find(names, name) - names.begin());
}

}  // namespace fleetfit::graph
