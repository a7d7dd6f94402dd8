#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace fleetfit::report {

struct HeatCell {
  double strength = 0;      ///< of its colour, 0 to 1
  bool stands_out = false;  ///< has the other colour
  std::string words = {};
  std::string title = {};  ///< shown while the pointer is over it
};

/// A square with a row and a column for each name, as a figure of a page.
std::string heat_map(std::span<const std::string> names,
                     const std::function<HeatCell(std::size_t row, std::size_t column)>& cell);

}  // namespace fleetfit::report
