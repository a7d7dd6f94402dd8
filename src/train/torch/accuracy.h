#pragma once

#include <stop_token>

#include "fleetfit/core/result.h"
#include "train/torch/images.h"
#include "train/torch/network.h"

namespace fleetfit::train {

/// Share of the images, or of their pixels, whose class the network finds, with the statistics that
/// it has. `cancelled` if asked to stop.
Result<double> accuracy_of(TorchNetwork& network, const TorchImages& images,
                           const std::stop_token& stop = {});

}  // namespace fleetfit::train
