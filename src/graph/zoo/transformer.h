#pragma once

#include <cstdint>

#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/zoo.h"

/// Blocks on sequences of tokens: N x tokens x features.
namespace fleetfit::graph {

/// Cuts the image into squares of `patch` pixels, each of which becomes a token.
TensorId patch_tokens(NetBuilder& net, TensorId image, std::int64_t patch, std::int64_t features);

/// Linear, activation, linear back to as many features as there were.
TensorId mlp(NetBuilder& net, TensorId x, std::int64_t hidden, const Activation& activation);

/// Scaled dot-product attention of the tokens to each other. `heads` divides the features.
TensorId self_attention(NetBuilder& net, TensorId x, std::int64_t heads);

struct EncoderSpec {
  std::int64_t heads = 1;
  std::int64_t hidden = 0;  ///< features inside of the perceptron
  Activation activation = kGelu;
  float epsilon = 1e-6F;
};

/// Attention and perceptron, each normalized before and added to its input.
TensorId encoder_block(NetBuilder& net, TensorId x, const EncoderSpec& spec);

struct VisionTransformerSpec {
  const char* name = nullptr;
  std::int64_t patch = 16;
  std::int64_t depth = 12;
  std::int64_t heads = 12;  ///< of 64 features each
};

/// A transformer on patches of the image whose class token is classified.
TensorId vision_transformer(NetBuilder& net, TensorId image, const NetOptions& options,
                            const VisionTransformerSpec& spec);

}  // namespace fleetfit::graph
