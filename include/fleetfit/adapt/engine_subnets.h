#pragma once

#include <memory>
#include <vector>

#include "fleetfit/adapt/prepared_subnet.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/engine/program.h"

namespace fleetfit::adapt {

/// Prepares subnets for the engine in this process and runs each once, so that its memory is there.
/// What the engine finds out about the fastest kernels while it prepares one serves the next.
/// Borrows both. Preparing fails with `invalid_input` on a text that is no subnet, and with
/// `unsupported` if the subnet has not one input and one output of floats.
std::unique_ptr<SubnetPreparer> make_engine_preparer(const std::vector<elastic::Supernet>& models,
                                                     const elastic::SubnetSpace& space,
                                                     engine::EngineOptions options);

}  // namespace fleetfit::adapt
