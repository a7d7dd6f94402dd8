#pragma once

#include <cstdint>

#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"

/// What elastic models are compared with, in the form of elastic models, so that `fleetfit
/// elastify` trains them and `fleetfit adapt` evaluates them as it does ours. Pruning alone, which
/// is LegoDNN's way, needs nothing of its own: `fleetfit elastify --merge 0`.
namespace fleetfit::bench {

/// Early exits: no branch but the originals, and from the second block on a classifier of its own
/// that may take the place of all that follows: the mean over pixels or tokens and a dense layer.
/// Fails with `unsupported` if the model does not give one row of classes for each image.
Result<elastic::Supernet> early_exits(const elastic::Supernet& model, std::uint64_t seed);

/// One width for all layers (slimmable networks): one block, which is the whole network, and for
/// each level of shrinking a branch in which all blocks that can be are shrunk to that level. They
/// have the weights of the model's branches, and learn as whole networks. Fails with
/// `invalid_input` if no block can be shrunk.
Result<elastic::Supernet> uniform_widths(const elastic::Supernet& model);

}  // namespace fleetfit::bench
