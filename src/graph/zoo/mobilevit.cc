#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"
#include "graph/zoo/transformer.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  std::int64_t expand;
  std::array<std::int64_t, 5> channels;
  std::array<std::int64_t, 3> features;  ///< of the tokens in the last three stages
  std::int64_t last;
};

constexpr Network kNetworks[] = {
    {"mobilevit_xxs", 2, {16, 24, 48, 64, 80}, {64, 80, 96}, 320},
    {"mobilevit_xs", 4, {32, 48, 64, 80, 96}, {96, 120, 144}, 384},
    {"mobilevit_s", 4, {32, 64, 96, 128, 160}, {144, 192, 240}, 640},
};

constexpr std::int64_t kPatch = 2;

/// Pixels at the same place of their 2x2 patch become one sequence.
TensorId unfold(NetBuilder& net, TensorId x) {
  const std::int64_t columns = net.width(x) / kPatch;
  const std::int64_t patches = net.height(x) / kPatch * columns;
  const std::int64_t features = net.channels(x);
  x = net.transpose(net.reshape(x, {-1, kPatch, columns, kPatch}), {0, 2, 1, 3});
  x = net.transpose(net.reshape(x, {-1, features, patches, kPatch * kPatch}), {0, 3, 2, 1});
  return net.reshape(x, {-1, patches, features});
}

/// Undoes unfold; `like` has the height and width of the result.
TensorId fold(NetBuilder& net, TensorId x, TensorId like) {
  const std::int64_t columns = net.width(like) / kPatch;
  const std::int64_t patches = net.height(like) / kPatch * columns;
  const std::int64_t features = net.channels(like);
  x = net.transpose(net.reshape(x, {-1, kPatch * kPatch, patches, features}), {0, 3, 2, 1});
  x = net.transpose(net.reshape(x, {-1, columns, kPatch, kPatch}), {0, 2, 1, 3});
  return net.reshape(x, {-1, features, net.height(like), net.width(like)});
}

TensorId mobilevit_block(NetBuilder& net, TensorId x, std::int64_t features, int depth) {
  const std::int64_t channels = net.channels(x);
  const TensorId local =
      net.conv(net.conv_bn(x, {.out = channels, .kernel = 3}, kSilu), {.out = features});
  TensorId tokens = unfold(net, local);
  for (int i = 0; i < depth; ++i) {
    tokens = encoder_block(
        net, tokens, {.heads = 4, .hidden = 2 * features, .activation = kSilu, .epsilon = 1e-5F});
  }
  TensorId y = fold(net, net.layer_norm(tokens, 1e-5F), local);
  y = net.conv_bn(y, {.out = channels}, kSilu);
  return net.conv_bn(net.concat({x, y}), {.out = channels, .kernel = 3}, kSilu);
}

TensorId mobilevit(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const auto residual = [&](std::size_t stage, std::int64_t stride) {
    x = inverted_residual(net, x,
                          {.stride = stride,
                           .expanded = row.expand * net.channels(x),
                           .out = options.scaled(row.channels[stage]),
                           .activation = kSilu});
  };
  constexpr std::array<int, 3> kDepth = {2, 4, 3};
  x = net.conv_bn(x, {.out = options.scaled(16), .kernel = 3, .stride = 2}, kSilu);
  residual(0, 1);
  for (const std::int64_t stride : {2, 1, 1}) residual(1, stride);
  for (std::size_t i = 0; i < kDepth.size(); ++i) {
    residual(i + 2, 2);
    x = mobilevit_block(net, x, options.scaled(row.features[i]), kDepth[i]);
  }
  x = net.conv_bn(x, {.out = options.scaled(row.last)}, kSilu);
  return classify(net, x, options.classes);
}

}  // namespace

void add_mobilevit(ZooList& zoo) {
  add_rows(zoo, {.family = "mobilevit", .image = 256}, kNetworks, mobilevit);
}

}  // namespace fleetfit::graph
