#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

enum class Kind : std::uint8_t {
  compressed,  ///< with bottlenecks, and transitions that halve the channels
  plain,       ///< for small images, without either
};

struct DenseNet {
  const char* name;
  Kind kind;
  std::int64_t growth;  ///< channels that each layer adds
  std::int64_t stem;
  std::vector<int> depths;  ///< layers of each block
};

TensorId norm_relu(NetBuilder& net, TensorId x) { return net.activate(net.batch_norm(x), kRelu); }

TensorId dense_block(NetBuilder& net, TensorId x, std::int64_t growth, int layers, Kind kind) {
  std::vector<TensorId> features{x};
  for (int i = 0; i < layers; ++i) {
    TensorId y = features.size() == 1 ? x : net.concat(features);
    y = norm_relu(net, y);
    if (kind == Kind::compressed) y = net.conv_bn(y, {.out = 4 * growth}, kRelu);
    features.push_back(net.conv(y, {.out = growth, .kernel = 3}));
  }
  return net.concat(features);
}

TensorId transition(NetBuilder& net, TensorId x, Kind kind) {
  const std::int64_t in = net.channels(x);
  x = net.conv(norm_relu(net, x), {.out = kind == Kind::compressed ? in / 2 : in});
  return net.average_pool(x, {.kernel = 2, .stride = 2});
}

TensorId build(NetBuilder& net, TensorId x, const NetOptions& options, const DenseNet& spec) {
  const std::int64_t stem = options.scaled(spec.stem);
  if (spec.kind == Kind::compressed) {
    x = net.conv_bn(x, {.out = stem, .kernel = 7, .stride = 2}, kRelu);
    x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  } else {
    x = net.conv(x, {.out = stem, .kernel = 3});
  }
  for (std::size_t block = 0; block < spec.depths.size(); ++block) {
    if (block > 0) x = transition(net, x, spec.kind);
    x = dense_block(net, x, options.scaled(spec.growth), spec.depths[block], spec.kind);
  }
  return classify(net, norm_relu(net, x), options.classes);
}

}  // namespace

void add_densenet(ZooList& zoo) {
  const std::vector<DenseNet> large{
      {"densenet121", Kind::compressed, 32, 64, {6, 12, 24, 16}},
      {"densenet161", Kind::compressed, 48, 96, {6, 12, 36, 24}},
      {"densenet169", Kind::compressed, 32, 64, {6, 12, 32, 32}},
      {"densenet201", Kind::compressed, 32, 64, {6, 12, 48, 32}},
  };
  add_rows(zoo, {.family = "densenet"}, large, build);
  const std::vector<DenseNet> small{{"densenet40_k12", Kind::plain, 12, 16, {12, 12, 12}}};
  add_rows(zoo, {.family = "densenet", .image = 32, .classes = 10}, small, build);
}

}  // namespace fleetfit::graph
