#pragma once

#include <optional>
#include <span>

#include "fleetfit/elastic/supernet.h"

namespace fleetfit::elastic {

/// One block in the place of several neighbours, given in order: that of them that has the input of
/// the first and the output of the last, the largest if there are several; else one of them with
/// its channels and strides fitted. Nothing if none can be fitted so that work is saved.
std::optional<graph::Graph> merged(std::span<const graph::Graph* const> blocks);

/// The block with other channels and strides, so that it takes and gives these shapes. Weights for
/// channels that are new repeat those that are there. Nothing if it cannot be done.
std::optional<graph::Graph> fitted(const graph::Graph& block, const graph::Shape& input,
                                   const graph::Shape& output);

}  // namespace fleetfit::elastic
