#pragma once

#include <cstdint>
#include <span>

#include "fleetfit/graph/net_builder.h"

namespace fleetfit::graph {

/// A block of MobileNetV3: an inverted residual.
struct MobileNetV3Block {
  enum class Squeeze : std::uint8_t { no, yes };
  enum class Function : std::uint8_t { relu, hard_swish };

  std::int64_t kernel;
  std::int64_t expanded;
  std::int64_t out;
  Squeeze squeeze;
  Function function;
  std::int64_t stride;

  bool operator==(const MobileNetV3Block&) const = default;
};

/// Those of MobileNetV3-Large.
std::span<const MobileNetV3Block> mobilenet_v3_large();

TensorId mobilenet_v3_block(NetBuilder& net, TensorId x, const MobileNetV3Block& block);

}  // namespace fleetfit::graph
