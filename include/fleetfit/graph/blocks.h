#pragma once

#include <cstdint>
#include <vector>

#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/zoo.h"

/// Blocks that several families of the zoo share, and spaces of networks with them.
namespace fleetfit::graph {

/// Weighs channels by a small network on their means: a 1x1 convolution to `reduced` channels, the
/// inner activation, a 1x1 convolution back, the gate. Both convolutions have a bias.
struct SqueezeExcite {
  std::int64_t reduced = 0;  ///< 0: no squeeze-excite
  Activation inner = kRelu;
  Activation gate = kSigmoid;
};

/// `x` times its gate; `x` itself if `se.reduced` is 0.
TensorId squeeze_excite(NetBuilder& net, TensorId x, const SqueezeExcite& se);

/// A depthwise convolution between a 1x1 convolution that expands and a linear one that projects.
struct InvertedResidual {
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t expanded = 0;  ///< channels of the depthwise convolution; 0: as the input
  std::int64_t out = 0;
  std::int64_t groups = 1;  ///< of the 1x1 convolutions; channels are shuffled behind the first
  SqueezeExcite se = {};    ///< behind the depthwise convolution and its activation
  Activation activation = kRelu6;
  float epsilon = 1e-5F;          ///< of the batch norms
  bool shortcut = true;           ///< where stride and channels allow it
  bool expand_unwidened = false;  ///< keeps the first convolution when it would not widen
};

TensorId inverted_residual(NetBuilder& net, TensorId x, const InvertedResidual& block);

/// One block that an architecture search chose.
struct SearchedLayer {
  std::int64_t kernel;
  std::int64_t expansion;
  std::int64_t groups = 1;
};

/// Blocks of one resolution; the first has the stride.
struct SearchedStage {
  std::int64_t out;
  std::int64_t stride;
  std::vector<SearchedLayer> layers;  ///< those that the search kept
};

/// Inverted residuals stage by stage; `common` gives what is the same in all of them.
TensorId searched_stages(NetBuilder& net, TensorId x, const NetOptions& options,
                         const std::vector<SearchedStage>& stages, const InvertedResidual& common);

/// The same with a dense convolution in place of the expanding and the depthwise one. Without
/// expansion, the dense convolution is all there is. Never has a squeeze-excite.
TensorId fused_inverted_residual(NetBuilder& net, TensorId x, const InvertedResidual& block);

/// A convolution of each channel for itself, with batch norm and activation. The channels of `spec`
/// do not count.
TensorId depthwise(NetBuilder& net, TensorId x, ConvSpec spec, const Activation& activation = {},
                   float epsilon = 1e-5F);

/// A depthwise convolution and a 1x1 convolution, each with batch norm and activation
/// (MobileNetV1).
TensorId depthwise_separable(NetBuilder& net, TensorId x, const ConvSpec& spec,
                             const Activation& activation = kRelu, float epsilon = 1e-5F);

/// The usual end of a classifier: mean over height and width, then a dense layer.
TensorId classify(NetBuilder& net, TensorId x, std::int64_t classes);

}  // namespace fleetfit::graph
