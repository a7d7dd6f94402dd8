#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/graph/net_builder.h"

/// Networks of the literature, built layer by layer with random weights. Adding one is a row in a
/// file of src/graph/zoo.
namespace fleetfit::graph {

/// Changes to a network as published; absent fields leave it so.
struct ZooOptions {
  double width = 1;  ///< multiplies the number of channels
  std::optional<std::int64_t> classes;
  std::optional<std::int64_t> image;     ///< height and width of the input
  std::optional<std::int64_t> channels;  ///< of the input
  std::uint64_t seed = 1;                ///< of the weights
};

/// What a network's builder gets.
struct NetOptions {
  std::int64_t classes = 1000;
  double width = 1;

  /// Channels under the width multiplier, rounded to a multiple of 8; unchanged at width 1.
  std::int64_t scaled(std::int64_t channels) const;
};

struct ZooEntry {
  std::string name;    ///< torchvision's where it has the network
  std::string family;  ///< e.g. "resnet"
  std::int64_t image = 224;
  std::int64_t classes = 1000;
  std::int64_t channels = 3;
  /// Builds the network on an input of N x channels x image x image and gives its output (logits).
  std::function<TensorId(NetBuilder&, TensorId, const NetOptions&)> build;
};

/// Every network, sorted by family, then as their files list them.
const std::vector<ZooEntry>& zoo();

/// Builds one; "mobilenet_v1_0.5" is "mobilenet_v1_x0_5". `not_found`, with the nearest names, if
/// there is none of that name; `invalid_input` if the options do not fit it (an image too small, a
/// width that leaves no channels).
Result<Graph> build_zoo_network(std::string_view name, const ZooOptions& options = {});

}  // namespace fleetfit::graph
