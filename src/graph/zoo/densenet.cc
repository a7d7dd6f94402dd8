#include <array>
#include <span>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

/// Networks whose layers read what several layers before them made.
namespace fleetfit::graph {
namespace {

// --- DenseNet ---

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

TensorId densenet(NetBuilder& net, TensorId x, const NetOptions& options, const DenseNet& spec) {
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

// --- DPN: a residual path and a dense one ---

constexpr float kDpnEpsilon = 1e-3F;

struct Dpn {
  const char* name;
  std::int64_t stem;
  std::int64_t stem_kernel;
  std::int64_t residual;  ///< channels of the residual path in the first stage; doubles with each
  std::int64_t inner;     ///< of the 3x3 convolutions there; doubles too
  std::int64_t groups;
  std::array<int, 4> depths;
  std::array<std::int64_t, 4> growths;  ///< channels that each block adds to the dense path
};

constexpr Dpn kDpns[] = {
    {"dpn68", 10, 3, 64, 128, 32, {3, 4, 12, 3}, {16, 32, 32, 64}},
    {"dpn92", 64, 7, 256, 96, 32, {3, 4, 20, 3}, {16, 32, 24, 128}},
    {"dpn98", 96, 7, 256, 160, 40, {3, 6, 20, 3}, {16, 32, 32, 128}},
};

/// The residual path and the dense one.
struct Paths {
  TensorId residual;
  TensorId dense;
};

struct DualBlock {
  std::int64_t residual = 0;
  std::int64_t inner = 0;
  std::int64_t growth = 0;
  std::int64_t groups = 0;
  std::int64_t stride = 1;
};

TensorId norm_relu_conv(NetBuilder& net, TensorId x, const ConvSpec& spec) {
  return net.conv(net.activate(net.batch_norm(x, kDpnEpsilon), kRelu), spec);
}

Paths cut(NetBuilder& net, TensorId x, std::int64_t residual) {
  const auto parts = net.split(x, {residual, net.channels(x) - residual});
  return {parts[0], parts[1]};
}

Paths extend(NetBuilder& net, TensorId in, const Paths& shortcut, const DualBlock& block) {
  TensorId y = norm_relu_conv(net, in, {.out = block.inner});
  y = norm_relu_conv(
      net, y, {.out = block.inner, .kernel = 3, .stride = block.stride, .groups = block.groups});
  y = norm_relu_conv(net, y, {.out = block.residual + block.growth});
  const Paths grown = cut(net, y, block.residual);
  return {net.add(shortcut.residual, grown.residual), net.concat({shortcut.dense, grown.dense})};
}

/// Opens the two paths of a stage with a 1x1 convolution.
Paths open_stage(NetBuilder& net, TensorId x, const DualBlock& block) {
  const TensorId projected =
      norm_relu_conv(net, x, {.out = block.residual + 2 * block.growth, .stride = block.stride});
  return extend(net, x, cut(net, projected, block.residual), block);
}

TensorId dpn(NetBuilder& net, TensorId x, const NetOptions& options, const Dpn& spec) {
  x = net.conv_bn(x, {.out = options.scaled(spec.stem), .kernel = spec.stem_kernel, .stride = 2},
                  kRelu, kDpnEpsilon);
  x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  for (std::size_t stage = 0; stage < spec.depths.size(); ++stage) {
    const std::int64_t per_group = spec.inner / spec.groups << stage;
    DualBlock block{.residual = options.scaled(spec.residual << stage),
                    .inner = scaled_channels(per_group, options.width, 1) * spec.groups,
                    .growth = options.scaled(spec.growths[stage]),
                    .groups = spec.groups,
                    .stride = stage == 0 ? 1 : 2};
    Paths paths = open_stage(net, x, block);
    block.stride = 1;
    for (int i = 1; i < spec.depths[stage]; ++i) {
      paths = extend(net, net.concat({paths.residual, paths.dense}), paths, block);
    }
    x = net.concat({paths.residual, paths.dense});
  }
  return classify(net, net.activate(net.batch_norm(x, kDpnEpsilon), kRelu), options.classes);
}

// --- HarDNet ---

struct HarmonicStage {
  int layers;
  std::int64_t out;
  std::int64_t growth;
  bool down;
};

constexpr ConvSpec kHalving{.kernel = 3, .stride = 2};

constexpr HarmonicStage k39[] = {
    {4, 96, 16, true}, {16, 320, 20, true}, {8, 640, 64, true}, {4, 1024, 160, false}};
constexpr HarmonicStage k68[] = {{8, 128, 14, true},
                                 {16, 256, 16, false},
                                 {16, 320, 20, true},
                                 {16, 640, 40, true},
                                 {4, 1024, 160, false}};
constexpr HarmonicStage k85[] = {{8, 192, 24, true},   {16, 256, 24, false}, {16, 320, 28, true},
                                 {16, 480, 36, false}, {16, 720, 48, true},  {4, 1280, 256, false}};

struct HardNet {
  const char* name;
  std::span<const HarmonicStage> stages;
  std::int64_t stem;
  double growth_factor;  ///< of a layer's width for each further layer that it reads
  bool depthwise;        ///< separable convolutions in place of dense ones
};

constexpr HardNet kHardNets[] = {
    {"hardnet39ds", k39, 48, 1.6, true},
    {"hardnet68ds", k68, 64, 1.7, true},
    {"hardnet68", k68, 64, 1.7, false},
    {"hardnet85", k85, 96, 1.7, false},
};

/// Layer i reads the layers i - 1, i - 2, i - 4, … as far as these steps divide i. The more it
/// reads, the more layers read it, and the wider it is.
TensorId harmonic_block(NetBuilder& net, TensorId x, const HarmonicStage& stage,
                        const HardNet& row) {
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
    layers.push_back(row.depthwise
                         ? depthwise(net, net.conv_bn(input, {.out = out}, kRelu6), {.kernel = 3})
                         : net.conv_bn(input, {.out = out, .kernel = 3}, kRelu6));
  }
  std::vector<TensorId> kept;
  for (std::size_t i = 1; i < layers.size(); ++i) {
    if (i % 2 == 1 || i + 1 == layers.size()) kept.push_back(layers[i]);
  }
  return net.conv_bn(net.concat(kept), {.out = stage.out}, kRelu6);
}

TensorId hardnet(NetBuilder& net, TensorId x, const NetOptions& options, const HardNet& row) {
  const std::int64_t stem = options.scaled(row.stem);
  x = net.conv_bn(x, {.out = stem / 2, .kernel = 3, .stride = 2}, kRelu6);
  x = net.conv_bn(x, {.out = stem, .kernel = row.depthwise ? 1 : 3}, kRelu6);
  x = row.depthwise ? depthwise(net, x, kHalving)
                    : net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  for (HarmonicStage stage : row.stages) {
    stage.out = options.scaled(stage.out);
    stage.growth = options.scaled(stage.growth);
    x = harmonic_block(net, x, stage, row);
    if (stage.down) {
      x = row.depthwise ? depthwise(net, x, kHalving) : net.max_pool(x, {.kernel = 2, .stride = 2});
    }
  }
  return classify(net, x, options.classes);
}

// --- PeleeNet ---

TensorId two_way_stem(NetBuilder& net, TensorId x, std::int64_t channels) {
  x = net.conv_bn(x, {.out = channels, .kernel = 3, .stride = 2}, kRelu);
  TensorId narrow = net.conv_bn(x, {.out = channels / 2}, kRelu);
  narrow = net.conv_bn(narrow, {.out = channels, .kernel = 3, .stride = 2}, kRelu);
  const TensorId pooled = net.max_pool(x, {.kernel = 2, .stride = 2});
  return net.conv_bn(net.concat({narrow, pooled}), {.out = channels}, kRelu);
}

/// Two branches of new channels, one of which sees twice as far.
TensorId two_way_layer(NetBuilder& net, TensorId x, std::int64_t growth, std::int64_t bottleneck) {
  const ConvSpec squeeze{.out = bottleneck * growth / 2};
  const ConvSpec conv3x3{.out = growth / 2, .kernel = 3};
  const TensorId near = net.conv_bn(net.conv_bn(x, squeeze, kRelu), conv3x3, kRelu);
  TensorId far = net.conv_bn(net.conv_bn(x, squeeze, kRelu), conv3x3, kRelu);
  far = net.conv_bn(far, conv3x3, kRelu);
  return net.concat({x, near, far});
}

TensorId peleenet(NetBuilder& net, TensorId x, const NetOptions& options) {
  constexpr std::array<int, 4> kDepth = {3, 4, 8, 6};
  constexpr std::array<std::int64_t, 4> kBottleneck = {1, 2, 4, 4};
  const std::int64_t growth = options.scaled(32);
  x = two_way_stem(net, x, growth);
  for (std::size_t stage = 0; stage < kDepth.size(); ++stage) {
    for (int i = 0; i < kDepth[stage]; ++i) x = two_way_layer(net, x, growth, kBottleneck[stage]);
    x = net.conv_bn(x, {.out = net.channels(x)}, kRelu);
    if (stage + 1 < kDepth.size()) x = net.average_pool(x, {.kernel = 2, .stride = 2});
  }
  return classify(net, x, options.classes);
}

// --- VoVNet ---

struct VoVNet {
  const char* name;
  std::array<int, 4> modules;
  double width;  ///< of everything behind the stem
};

constexpr VoVNet kVoVNets[] = {
    {"vovnet27_slim", {1, 1, 1, 1}, 0.5},
    {"vovnet39", {1, 1, 2, 2}, 1},
    {"vovnet57", {1, 1, 4, 3}, 1},
};

/// Five convolutions in a row; all that they made is put together once, at the end.
TensorId one_shot_aggregation(NetBuilder& net, TensorId x, std::int64_t inner, std::int64_t out) {
  std::vector<TensorId> made = {x};
  for (int i = 0; i < 5; ++i) {
    made.push_back(net.conv_bn(made.back(), {.out = inner, .kernel = 3}, kRelu));
  }
  return net.conv_bn(net.concat(made), {.out = out}, kRelu);
}

TensorId vovnet(NetBuilder& net, TensorId x, const NetOptions& options, const VoVNet& row) {
  const std::int64_t first = options.scaled(64);
  x = net.conv_bn(x, {.out = first, .kernel = 3, .stride = 2}, kRelu);
  x = net.conv_bn(x, {.out = first, .kernel = 3}, kRelu);
  x = net.conv_bn(x, {.out = options.scaled(128), .kernel = 3, .stride = 2}, kRelu);
  const double width = row.width * options.width;
  for (std::size_t stage = 0; stage < row.modules.size(); ++stage) {
    const auto index = static_cast<std::int64_t>(stage);
    const std::int64_t inner = scaled_channels(128 + 32 * index, width);
    const std::int64_t out = scaled_channels(256 * (index + 1), width);
    if (stage > 0) x = net.max_pool(x, {.kernel = 3, .stride = 2, .ceil_mode = true});
    x = one_shot_aggregation(net, x, inner, out);
    for (int i = 1; i < row.modules[stage]; ++i) {
      x = net.add(one_shot_aggregation(net, x, inner, out), x);
    }
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_densenet(ZooList& zoo) {
  const std::vector<DenseNet> large{
      {"densenet121", Kind::compressed, 32, 64, {6, 12, 24, 16}},
      {"densenet161", Kind::compressed, 48, 96, {6, 12, 36, 24}},
      {"densenet169", Kind::compressed, 32, 64, {6, 12, 32, 32}},
      {"densenet201", Kind::compressed, 32, 64, {6, 12, 48, 32}},
  };
  const std::vector<DenseNet> small{{"densenet40_k12", Kind::plain, 12, 16, {12, 12, 12}}};
  add_rows(zoo, {.family = "densenet"}, large, densenet);
  add_rows(zoo, {.family = "densenet", .image = 32, .classes = 10}, small, densenet);
  add_rows(zoo, {.family = "dpn"}, kDpns, dpn);
  add_rows(zoo, {.family = "hardnet"}, kHardNets, hardnet);
  zoo.push_back({.name = "peleenet", .family = "peleenet", .build = peleenet});
  add_rows(zoo, {.family = "vovnet"}, kVoVNets, vovnet);
}

}  // namespace fleetfit::graph
