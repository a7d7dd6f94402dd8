#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fleetfit::report {

struct TimelineBar {
  std::size_t row = 0;
  double start_s = 0;  ///< since the timeline begins
  double length_s = 0;
  std::string style = {};  ///< "bar", "bar-finished" or "bar-best"
  std::string title = {};  ///< shown while the pointer is over it
};

/// Who did what when, over so many seconds: a row for each name. A figure of a page.
std::string timeline(std::span<const std::string> names, std::span<const TimelineBar> bars,
                     double seconds);

}  // namespace fleetfit::report
