#include <array>

#include "fleetfit/graph/net_builder.h"
#include "graph/zoo/families.h"

/// Convolutions, pooling and dense layers: LeNet, AlexNet, VGG, SqueezeNet.
namespace fleetfit::graph {
namespace {

TensorId lenet5(NetBuilder& net, TensorId x, const NetOptions& options) {
  const auto conv = [&](ConvSpec spec) {
    spec.kernel = 5;
    spec.bias = true;
    x = net.average_pool(net.activate(net.conv(x, spec), kTanh), {.kernel = 2, .stride = 2});
  };
  const auto dense = [&](std::int64_t out) { x = net.activate(net.linear(x, out), kTanh); };
  conv({.out = options.scaled(6), .pad = 2});
  conv({.out = options.scaled(16), .pad = 0});
  x = net.flatten(x);
  dense(options.scaled(120));
  dense(options.scaled(84));
  return net.linear(x, options.classes);
}

/// Two hidden dense layers, and one of the classes.
TensorId dense_head(NetBuilder& net, TensorId x, const NetOptions& options) {
  x = net.flatten(x);
  for (int i = 0; i < 2; ++i) x = net.activate(net.linear(x, options.scaled(4096)), kRelu);
  return net.linear(x, options.classes);
}

TensorId alexnet(NetBuilder& net, TensorId x, const NetOptions& options) {
  const auto conv = [&](ConvSpec spec) {
    spec.out = options.scaled(spec.out);
    spec.bias = true;
    x = net.activate(net.conv(x, spec), kRelu);
  };
  const auto pool = [&] { x = net.max_pool(x, {.kernel = 3, .stride = 2}); };

  conv({.out = 64, .kernel = 11, .stride = 4, .pad = 2});
  pool();
  conv({.out = 192, .kernel = 5});
  pool();
  for (const std::int64_t out : {384, 256, 256}) conv({.out = out, .kernel = 3});
  pool();
  return dense_head(net, x, options);
}

// --- VGG ---

constexpr std::array<std::int64_t, 5> kStageChannels{64, 128, 256, 512, 512};

enum class Norm : std::uint8_t { none, batch };

struct Vgg {
  const char* name;
  std::array<int, 5> depths;  ///< convolutions of each stage
  Norm norm = Norm::none;
};

constexpr Vgg kVggs[] = {
    {"vgg11", {1, 1, 2, 2, 2}}, {"vgg11_bn", {1, 1, 2, 2, 2}, Norm::batch},
    {"vgg13", {2, 2, 2, 2, 2}}, {"vgg13_bn", {2, 2, 2, 2, 2}, Norm::batch},
    {"vgg16", {2, 2, 3, 3, 3}}, {"vgg16_bn", {2, 2, 3, 3, 3}, Norm::batch},
    {"vgg19", {2, 2, 4, 4, 4}}, {"vgg19_bn", {2, 2, 4, 4, 4}, Norm::batch},
};

TensorId vgg(NetBuilder& net, TensorId x, const NetOptions& options, const Vgg& row) {
  for (std::size_t stage = 0; stage < row.depths.size(); ++stage) {
    const std::int64_t out = options.scaled(kStageChannels[stage]);
    for (int i = 0; i < row.depths[stage]; ++i) {
      x = net.conv(x, {.out = out, .kernel = 3, .bias = true});
      if (row.norm == Norm::batch) x = net.batch_norm(x);
      x = net.activate(x, kRelu);
    }
    x = net.max_pool(x, {.kernel = 2, .stride = 2});
  }
  return dense_head(net, x, options);
}

// --- SqueezeNet ---

/// A 1x1 convolution, then a 1x1 and a 3x3 one side by side. All have the same channels in both
/// networks, which differ in where they pool.
struct Fire {
  std::int64_t squeezed;
  std::int64_t expanded;  ///< by each of the two
};

constexpr std::array<Fire, 8> kFires{
    {{16, 64}, {16, 64}, {32, 128}, {32, 128}, {48, 192}, {48, 192}, {64, 256}, {64, 256}}};

struct SqueezeNet {
  const char* name;
  std::int64_t stem_kernel;
  std::int64_t stem;
  std::array<bool, kFires.size()> pool_before;
};

constexpr SqueezeNet kSqueezeNets[] = {
    {"squeezenet1_0", 7, 96, {true, false, false, true, false, false, false, true}},
    {"squeezenet1_1", 3, 64, {true, false, true, false, true, false, false, false}},
};

TensorId squeezenet(NetBuilder& net, TensorId x, const NetOptions& options, const SqueezeNet& row) {
  const auto conv = [&](TensorId in, ConvSpec spec) {
    spec.out = options.scaled(spec.out);
    spec.bias = true;
    return net.activate(net.conv(in, spec), kRelu);
  };
  x = conv(x, {.out = row.stem, .kernel = row.stem_kernel, .stride = 2, .pad = 0});
  for (std::size_t i = 0; i < kFires.size(); ++i) {
    const Fire& fire = kFires[i];
    if (row.pool_before[i]) x = net.max_pool(x, {.kernel = 3, .stride = 2, .ceil_mode = true});
    x = conv(x, {.out = fire.squeezed});
    x = net.concat({conv(x, {.out = fire.expanded}), conv(x, {.out = fire.expanded, .kernel = 3})});
  }
  x = net.activate(net.conv(x, {.out = options.classes, .bias = true}), kRelu);
  return net.flatten(net.global_average_pool(x));
}

}  // namespace

void add_classic(ZooList& zoo) {
  zoo.push_back({.name = "lenet5",
                 .family = "lenet",
                 .image = 28,
                 .classes = 10,
                 .channels = 1,
                 .build = lenet5});
  zoo.push_back({.name = "alexnet", .family = "alexnet", .build = alexnet});
  add_rows(zoo, {.family = "vgg"}, kVggs, vgg);
  add_rows(zoo, {.family = "squeezenet"}, kSqueezeNets, squeezenet);
}

}  // namespace fleetfit::graph
