#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  std::int64_t channels;
  int depth;
  std::int64_t kernel;
  std::int64_t patch;
  Activation activation;
};

constexpr Network kNetworks[] = {
    {"convmixer_768_32", 768, 32, 7, 7, kRelu},
    {"convmixer_1024_20_ks9_p14", 1024, 20, 9, 14, kGelu},
};

TensorId convmixer(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const std::int64_t channels = options.scaled(row.channels);
  const auto layer = [&](TensorId input, ConvSpec spec) {
    spec.out = channels;
    spec.bias = true;
    return net.batch_norm(net.activate(net.conv(input, spec), row.activation));
  };
  x = layer(x, {.kernel = row.patch, .stride = row.patch, .pad = 0});
  for (int i = 0; i < row.depth; ++i) {
    x = net.add(layer(x, {.kernel = row.kernel, .groups = channels}), x);
    x = layer(x, {.kernel = 1});
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_convmixer(ZooList& zoo) { add_rows(zoo, {.family = "convmixer"}, kNetworks, convmixer); }

}  // namespace fleetfit::graph
