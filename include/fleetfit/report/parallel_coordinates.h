#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fleetfit::report {

/// A vertical axis: places on it, 0 at the bottom and 1 at the top, with what stands beside them.
struct VerticalAxis {
  std::string title = {};
  std::vector<std::pair<double, std::string>> labels = {};
};

/// A line across all axes.
struct AcrossLine {
  std::vector<double> places = {};  ///< one for each axis
  std::string style = {};           ///< "trial", "trial good" or "trial first"
  std::string title = {};           ///< shown while the pointer is over it
};

/// Lines are drawn in their order, as a figure of a page. There are two axes or more.
std::string parallel_coordinates(std::span<const VerticalAxis> axes,
                                 std::span<const AcrossLine> lines);

}  // namespace fleetfit::report
