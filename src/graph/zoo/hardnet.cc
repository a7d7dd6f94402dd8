#include <span>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Stage {
  int layers;
  std::int64_t out;
  std::int64_t growth;
  bool down;
};

constexpr Stage k39[] = {
    {4, 96, 16, true}, {16, 320, 20, true}, {8, 640, 64, true}, {4, 1024, 160, false}};
constexpr Stage k68[] = {{8, 128, 14, true},
                         {16, 256, 16, false},
                         {16, 320, 20, true},
                         {16, 640, 40, true},
                         {4, 1024, 160, false}};
constexpr Stage k85[] = {{8, 192, 24, true},   {16, 256, 24, false}, {16, 320, 28, true},
                         {16, 480, 36, false}, {16, 720, 48, true},  {4, 1280, 256, false}};

struct Network {
  const char* name;
  std::span<const Stage> stages;
  std::int64_t stem;
  double growth_factor;  ///< of a layer's width for each further layer that it reads
  bool depthwise;        ///< separable convolutions in place of dense ones
};

constexpr Network kNetworks[] = {
    {"hardnet39ds", k39, 48, 1.6, true},
    {"hardnet68ds", k68, 64, 1.7, true},
    {"hardnet68", k68, 64, 1.7, false},
    {"hardnet85", k85, 96, 1.7, false},
};

TensorId depthwise(NetBuilder& net, TensorId x, std::int64_t stride) {
  const std::int64_t channels = net.channels(x);
  return net.conv_bn(x, {.out = channels, .kernel = 3, .stride = stride, .groups = channels});
}

/// Layer i reads the layers i - 1, i - 2, i - 4, … as far as these steps divide i. The more it
/// reads, the more layers read it, and the wider it is.
TensorId harmonic_block(NetBuilder& net, TensorId x, const Stage& stage, const Network& row) {
  std::vector<TensorId> layers = {x};
  for (int i = 1; i <= stage.layers; ++i) {
    std::vector<TensorId> read;
    auto exact = static_cast<double>(stage.growth);
    for (int step = 1; step <= i && i % step == 0; step *= 2) {
      read.push_back(layers[static_cast<std::size_t>(i - step)]);
      if (step > 1) exact *= row.growth_factor;
    }
    const std::int64_t out = static_cast<std::int64_t>(exact + 1) / 2 * 2;
    const TensorId input = read.size() == 1 ? read[0] : net.concat(read);
    layers.push_back(row.depthwise ? depthwise(net, net.conv_bn(input, {.out = out}, kRelu6), 1)
                                   : net.conv_bn(input, {.out = out, .kernel = 3}, kRelu6));
  }
  std::vector<TensorId> kept;
  for (std::size_t i = 1; i < layers.size(); ++i) {
    if (i % 2 == 1 || i + 1 == layers.size()) kept.push_back(layers[i]);
  }
  return net.conv_bn(net.concat(kept), {.out = stage.out}, kRelu6);
}

TensorId hardnet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const std::int64_t stem = options.scaled(row.stem);
  x = net.conv_bn(x, {.out = stem / 2, .kernel = 3, .stride = 2}, kRelu6);
  x = net.conv_bn(x, {.out = stem, .kernel = row.depthwise ? 1 : 3}, kRelu6);
  x = row.depthwise ? depthwise(net, x, 2) : net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  for (Stage stage : row.stages) {
    stage.out = options.scaled(stage.out);
    stage.growth = options.scaled(stage.growth);
    x = harmonic_block(net, x, stage, row);
    if (stage.down) {
      x = row.depthwise ? depthwise(net, x, 2) : net.max_pool(x, {.kernel = 2, .stride = 2});
    }
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_hardnet(ZooList& zoo) { add_rows(zoo, {.family = "hardnet"}, kNetworks, hardnet); }

}  // namespace fleetfit::graph
