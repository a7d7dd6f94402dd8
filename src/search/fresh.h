#pragma once

#include <memory>
#include <span>
#include <utility>

#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/search/strategy.h"
#include "fleetfit/space/design_index.h"
#include "fleetfit/space/space.h"

namespace fleetfit::search {

/// Fails with `invalid_input`, naming the option.
Status check(const EvolutionOptions& options);

/// Those of a whole space. Borrows it.
std::unique_ptr<const Moves> moves_of(const space::Space& space);

/// The designs that a strategy has proposed, so that it proposes none twice.
class Fresh {
 public:
  explicit Fresh(std::unique_ptr<const Moves> moves)
      : moves_(std::move(moves)), seen_(moves_->space()) {}

  const Moves& moves() const { return *moves_; }
  space::DesignIndex& seen() { return seen_; }

  /// Adds random designs until there are `count`, fewer if new ones are hard to find.
  void sample(core::Random& random, std::size_t count, space::Population& designs);

  /// Mutates the design until it is new, and notes it; false if it never was.
  bool make_fresh(core::Random& random, double probability, std::span<space::Choice> design);

 private:
  std::unique_ptr<const Moves> moves_;
  space::DesignIndex seen_;
};

}  // namespace fleetfit::search
