#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fleetfit/graph/blocks.h"

namespace fleetfit::graph {

/// A subnet of Once-for-All's MobileNetV3: what is elastic in it. Layers have no groups.
struct OnceForAllSubnet {
  double width = 1;
  std::array<std::vector<SearchedLayer>, 5> stages = {};
};

/// The network on an image, up to its logits.
TensorId once_for_all_mobilenet_v3(NetBuilder& net, TensorId image, const OnceForAllSubnet& subnet,
                                   std::int64_t classes);

}  // namespace fleetfit::graph
