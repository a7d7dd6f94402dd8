#pragma once

#include <cstddef>
#include <vector>

namespace fleetfit::search {

/// Something that serves some of several things: a model, and the devices on which it is good
/// enough.
struct Serving {
  std::vector<bool> serves = {};  ///< for each thing
  double worth = 0;               ///< of equally many, those that are worth more are taken
};

/// Places of the fewest that together serve all things, in order; things that nobody serves are
/// left out. Exact as long as the search for it is short, which it is for dozens of things, else
/// what is found by always taking the one that serves most of those that are left.
std::vector<std::size_t> fewest_that_serve_all(const std::vector<Serving>& all);

}  // namespace fleetfit::search
