#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::graph {

using ZooList = std::vector<ZooEntry>;

/// Adds one network for each row of a table. `like` holds what the networks have in common; a row
/// has a `name`, may have an `image`, and is handed to `build` as the last argument.
template <class Rows, class Build>
void add_rows(ZooList& zoo, const ZooEntry& like, const Rows& rows, Build build) {
  for (const auto& row : rows) {
    ZooEntry entry = like;
    entry.name = row.name;
    if constexpr (requires { row.image; }) entry.image = row.image;
    entry.build = [row, build](NetBuilder& net, TensorId image, const NetOptions& options) {
      return build(net, image, options, row);
    };
    zoo.push_back(std::move(entry));
  }
}

// Each adds the families of one file, the networks of a family in the order of their list.
void add_classic(ZooList& zoo);  ///< LeNet, AlexNet, VGG, SqueezeNet
void add_darknet(ZooList& zoo);  ///< Darknet, and networks of partial stages
void add_densenet(ZooList& zoo);
void add_efficientnet(ZooList& zoo);  ///< and MixNet
void add_espnet_v2(ZooList& zoo);
void add_inception(ZooList& zoo);  ///< GoogLeNet, Inception v3 and v4, Xception
void add_mobilenet(ZooList& zoo);  ///< and others of a short table of blocks
void add_regnet(ZooList& zoo);
void add_repvgg(ZooList& zoo);    ///< and MobileOne
void add_resnet(ZooList& zoo);    ///< and what varies its blocks
void add_searched(ZooList& zoo);  ///< what an architecture search wrote down
void add_shufflenet(ZooList& zoo);
void add_transformers(ZooList& zoo);  ///< and what is built like them

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
