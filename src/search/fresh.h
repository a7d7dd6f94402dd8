#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/space/design_index.h"
#include "fleetfit/space/space.h"

namespace fleetfit::search {

/// The designs that a strategy has proposed, so that it proposes none twice.
class Fresh {
 public:
  explicit Fresh(const space::Space& space) : space_(space), seen_(space) {}

  /// Adds random designs until there are `count`, fewer if new ones are hard to find.
  void sample(core::Random& random, std::size_t count, space::Population& designs) {
    std::vector<space::Choice> design(space_.genes().size());
    std::size_t failures = 0;
    while (designs.size() < count && failures < kMostFailures) {
      space_.sample(random, design);
      failures = seen_.add(design) ? 0 : failures + 1;
      if (failures == 0) designs.add(design);
    }
  }

  /// Mutates the design until it is new, and notes it; false if it never was.
  bool make_fresh(core::Random& random, double probability, std::span<space::Choice> design) {
    const double least = 1.0 / static_cast<double>(design.size());
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (seen_.add(design)) return true;
      space_.mutate(random, std::max(probability, least), design);
    }
    return false;
  }

  space::DesignIndex& seen() { return seen_; }

 private:
  static constexpr std::size_t kMostFailures = 1000;
  static constexpr int kAttempts = 12;

  const space::Space& space_;
  space::DesignIndex seen_;
};

}  // namespace fleetfit::search
