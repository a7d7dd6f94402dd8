#include "fleetfit/graph/net_builder.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

/// A 1x1 convolution, then a 1x1 and a 3x3 one side by side.
struct Fire {
  std::int64_t squeezed;
  std::int64_t expanded;  ///< by each of the two
  bool pool_before;
};

struct SqueezeNet {
  const char* name;
  std::int64_t stem_kernel;
  std::int64_t stem;
  Fire fires[8];
};

constexpr SqueezeNet kSqueezeNets[] = {
    {"squeezenet1_0",
     7,
     96,
     {{16, 64, true},
      {16, 64, false},
      {32, 128, false},
      {32, 128, true},
      {48, 192, false},
      {48, 192, false},
      {64, 256, false},
      {64, 256, true}}},
    {"squeezenet1_1",
     3,
     64,
     {{16, 64, true},
      {16, 64, false},
      {32, 128, true},
      {32, 128, false},
      {48, 192, true},
      {48, 192, false},
      {64, 256, false},
      {64, 256, false}}},
};

TensorId build(NetBuilder& net, TensorId x, const NetOptions& options, const SqueezeNet& spec) {
  const auto conv = [&](TensorId in, std::int64_t out, std::int64_t kernel) {
    const ConvSpec layer{.out = options.scaled(out), .kernel = kernel, .bias = true};
    return net.activate(net.conv(in, layer), kRelu);
  };

  const ConvSpec stem{.out = options.scaled(spec.stem),
                      .kernel = spec.stem_kernel,
                      .stride = 2,
                      .pad = 0,
                      .bias = true};
  x = net.activate(net.conv(x, stem), kRelu);
  for (const Fire& fire : spec.fires) {
    if (fire.pool_before) x = net.max_pool(x, {.kernel = 3, .stride = 2, .ceil_mode = true});
    x = conv(x, fire.squeezed, 1);
    x = net.concat({conv(x, fire.expanded, 1), conv(x, fire.expanded, 3)});
  }
  x = net.activate(net.conv(x, {.out = options.classes, .bias = true}), kRelu);
  return net.flatten(net.global_average_pool(x));
}

}  // namespace

void add_squeezenet(ZooList& zoo) { add_rows(zoo, {.family = "squeezenet"}, kSqueezeNets, build); }

}  // namespace fleetfit::graph
