#include "graph/zoo/rows.h"
#include "graph/zoo/transformer.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  std::int64_t patch;
  std::int64_t depth;
  std::int64_t features;
};

constexpr Network kNetworks[] = {
    {"mixer_s32", 32, 8, 512},
    {"mixer_s16", 16, 8, 512},
    {"mixer_b32", 32, 12, 768},
    {"mixer_b16", 16, 12, 768},
};

constexpr float kEpsilon = 1e-6F;

/// One perceptron across the tokens, one across the features.
TensorId mixer_block(NetBuilder& net, TensorId x, std::int64_t features) {
  const TensorId across = net.transpose(net.layer_norm(x, kEpsilon), {0, 2, 1});
  x = net.add(x, net.transpose(mlp(net, across, features / 2, kGelu), {0, 2, 1}));
  return net.add(x, mlp(net, net.layer_norm(x, kEpsilon), 4 * features, kGelu));
}

TensorId mixer(NetBuilder& net, TensorId image, const NetOptions& options, const Network& row) {
  const std::int64_t features = options.scaled(row.features);
  TensorId x = patch_tokens(net, image, row.patch, features);
  for (std::int64_t i = 0; i < row.depth; ++i) x = mixer_block(net, x, features);
  return net.linear(net.mean(net.layer_norm(x, kEpsilon), {1}), options.classes);
}

}  // namespace

void add_mlp_mixer(ZooList& zoo) { add_rows(zoo, {.family = "mlp_mixer"}, kNetworks, mixer); }

}  // namespace fleetfit::graph
