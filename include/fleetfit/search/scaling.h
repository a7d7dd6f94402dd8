#pragma once

#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/space.h"

namespace fleetfit::search {

struct ScalingOptions {
  int most_blocks = 2;  ///< to add or to take away
};

/// What people do without a search (the baseline of One Proxy): takes one good design and changes
/// its depth. Gives the design with blocks taken away, the design itself, and the design with
/// blocks added, from the shallowest to the deepest; all different. A block is added where the
/// fewest are and taken where the most are, from the back; what becomes active copies the choice of
/// the last active gene before it that has the same choices.
///
/// Genes of depth are those with amounts whose name holds "depth". Fails with `unsupported` if the
/// space has none, and as `Space::check` does.
Result<space::Population> scaled_designs(const space::Space& space, space::Design design,
                                         const ScalingOptions& options = {});

}  // namespace fleetfit::search
