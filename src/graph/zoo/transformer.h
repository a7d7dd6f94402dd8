#pragma once

#include <cstdint>

#include "fleetfit/graph/net_builder.h"

namespace fleetfit::graph {

struct EncoderSpec {
  std::int64_t heads = 1;   ///< divides the features
  std::int64_t hidden = 0;  ///< features inside of the perceptron
  Activation activation = kGelu;
  float epsilon = 1e-6F;
};

/// Attention and perceptron on N x tokens x features, each normalized before and added to its
/// input.
TensorId encoder_block(NetBuilder& net, TensorId x, const EncoderSpec& spec);

}  // namespace fleetfit::graph
