#pragma once

#include <span>

#include "fleetfit/core/result.h"
#include "fleetfit/predict/dense_network.h"
#include "fleetfit/transfer/adaproxy.h"

/// Adaptation of a proxy whose latency model is a neural network.
namespace fleetfit::transfer {

struct AdaptedNetwork {
  predict::DenseNetwork network;  ///< all layers but the last are the proxy's
  double lambda = 0;
  double held_out_srcc = 0;
  double proxy_srcc = 0;
  bool keeps_proxy = false;  ///< the last layer is the proxy's but for a common factor
  std::size_t changed = 0;   ///< weights of the last layer that got a factor of their own
};

/// What the layer before the last gives is the encoding of a linear model, whose weights are the
/// last layer's: these are adapted as those of an AdaptedProxy are. In the logarithm of latency if
/// the network works in that. `rows` has the network's features of each measured design. Fails as
/// `adapt` does, and if the rows do not fit the network.
Result<AdaptedNetwork> adapt_last_layer(const predict::DenseNetwork& proxy,
                                        const predict::MatrixView& rows,
                                        std::span<const double> latency_ms,
                                        const AdaptOptions& options = {});

}  // namespace fleetfit::transfer
