#include <algorithm>
#include <array>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

/// ResNet, and what varies its blocks: Res2Net, BagNet, HRNet.
namespace fleetfit::graph {
namespace {

// --- ResNet ---

enum class Block : std::uint8_t { basic, bottleneck };

struct ResNet {
  const char* name = nullptr;
  Block block = Block::basic;
  std::vector<int> depths = {};  ///< blocks of each stage; the channels double from one to the next
  std::int64_t groups = 1;
  std::int64_t group_width = 64;  ///< channels of a group for each 64 of the stage
  std::int64_t se_reduction = 0;  ///< 0: no squeeze-excite
};

TensorId basic_branch(NetBuilder& net, TensorId x, std::int64_t planes, std::int64_t stride) {
  x = net.conv_bn(x, {.out = planes, .kernel = 3, .stride = stride}, kRelu);
  return net.conv_bn(x, {.out = planes, .kernel = 3});
}

TensorId bottleneck_branch(const ResNet& spec, NetBuilder& net, TensorId x, std::int64_t planes,
                           std::int64_t stride) {
  const std::int64_t group = std::max<std::int64_t>(1, planes * spec.group_width / 64);
  const std::int64_t inner = group * spec.groups;
  x = net.conv_bn(x, {.out = inner}, kRelu);
  x = net.conv_bn(x, {.out = inner, .kernel = 3, .stride = stride, .groups = spec.groups}, kRelu);
  return net.conv_bn(x, {.out = 4 * planes});
}

TensorId residual_block(const ResNet& spec, NetBuilder& net, TensorId x, std::int64_t planes,
                        std::int64_t stride) {
  TensorId y = spec.block == Block::basic ? basic_branch(net, x, planes, stride)
                                          : bottleneck_branch(spec, net, x, planes, stride);
  const std::int64_t out = net.channels(y);
  if (spec.se_reduction != 0) {
    y = squeeze_excite(net, y, {.reduced = std::max<std::int64_t>(1, out / spec.se_reduction)});
  }
  if (stride != 1 || net.channels(x) != out) x = net.conv_bn(x, {.out = out, .stride = stride});
  return net.activate(net.add(y, x), kRelu);
}

/// What follows the stem, with `planes` channels inside the blocks of the first stage.
TensorId stages(NetBuilder& net, TensorId x, const NetOptions& options, const ResNet& spec,
                std::int64_t planes) {
  for (std::size_t stage = 0; stage < spec.depths.size(); ++stage, planes *= 2) {
    for (int i = 0; i < spec.depths[stage]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = residual_block(spec, net, x, options.scaled(planes), stride);
    }
  }
  return classify(net, x, options.classes);
}

/// Makes a large image four times smaller.
TensorId large_stem(NetBuilder& net, TensorId x, const NetOptions& options) {
  x = net.conv_bn(x, {.out = options.scaled(64), .kernel = 7, .stride = 2}, kRelu);
  return net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
}

TensorId build_large(NetBuilder& net, TensorId x, const NetOptions& options, const ResNet& spec) {
  x = large_stem(net, x, options);
  return stages(net, x, options, spec, 64);
}

TensorId build_small(NetBuilder& net, TensorId x, const NetOptions& options, const ResNet& spec) {
  x = net.conv_bn(x, {.out = options.scaled(16), .kernel = 3}, kRelu);
  return stages(net, x, options, spec, 16);
}

/// The large networks for small images: they see them as they are, without the stem that makes
/// large ones four times smaller.
TensorId build_unshrunk(NetBuilder& net, TensorId x, const NetOptions& options,
                        const ResNet& spec) {
  x = net.conv_bn(x, {.out = options.scaled(64), .kernel = 3}, kRelu);
  return stages(net, x, options, spec, 64);
}

// --- Res2Net ---

struct Res2Net {
  const char* name;
  std::array<int, 4> depth;
  std::int64_t width;   ///< channels of one part in the first stage
  std::int64_t scales;  ///< parts of a res2_block's inner channels
};

constexpr Res2Net kRes2Nets[] = {
    {"res2net50_48w_2s", {3, 4, 6, 3}, 48, 2},
    {"res2net50_26w_4s", {3, 4, 6, 3}, 26, 4},
    {"res2net50_14w_8s", {3, 4, 6, 3}, 14, 8},
    {"res2net101_26w_4s", {3, 4, 23, 3}, 26, 4},
};

struct Res2Block {
  std::int64_t out;
  std::int64_t part;  ///< channels of one part
  std::int64_t scales;
  std::int64_t stride;
};

/// A bottleneck whose inner channels are split: each part but the last is convolved together with
/// the result of the part before. The first res2_block of a stage keeps the parts apart.
TensorId res2_block(NetBuilder& net, TensorId x, const Res2Block& spec, bool first) {
  TensorId shortcut = x;
  if (first) shortcut = net.conv_bn(x, {.out = spec.out, .stride = spec.stride});
  const TensorId wide = net.conv_bn(x, {.out = spec.part * spec.scales}, kRelu);
  std::vector<TensorId> parts =
      net.split(wide, Ints(static_cast<std::size_t>(spec.scales), spec.part));
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (i > 0 && !first) parts[i] = net.add(parts[i - 1], parts[i]);
    parts[i] = net.conv_bn(parts[i], {.out = spec.part, .kernel = 3, .stride = spec.stride}, kRelu);
  }
  if (first) {
    parts.back() = net.average_pool(parts.back(), {.kernel = 3, .stride = spec.stride, .pad = 1});
  }
  const TensorId y = net.conv_bn(net.concat(parts), {.out = spec.out});
  return net.activate(net.add(y, shortcut), kRelu);
}

TensorId res2net(NetBuilder& net, TensorId x, const NetOptions& options, const Res2Net& row) {
  x = large_stem(net, x, options);
  for (std::size_t stage = 0; stage < row.depth.size(); ++stage) {
    for (int i = 0; i < row.depth[stage]; ++i) {
      x = res2_block(net, x,
                     {.out = options.scaled(256 << stage),
                      .part = options.scaled(row.width << stage),
                      .scales = row.scales,
                      .stride = i == 0 && stage > 0 ? 2 : 1},
                     i == 0);
    }
  }
  return classify(net, x, options.classes);
}

// --- BagNet ---

struct BagNet {
  const char* name;                           ///< with the pixels that one feature sees
  std::array<std::int64_t, 4> first_kernels;  ///< of the first cut_block of each stage
};

constexpr BagNet kBagNets[] = {
    {"bagnet9", {3, 3, 1, 1}}, {"bagnet17", {3, 3, 3, 1}}, {"bagnet33", {3, 3, 3, 3}}};

struct CutBlock {
  std::int64_t middle;
  std::int64_t kernel;
  std::int64_t stride;
};

/// ResNet's bottleneck without padding: the shortcut is cut at the lower right edge to fit.
TensorId cut_block(NetBuilder& net, TensorId x, const CutBlock& spec) {
  const std::int64_t out = 4 * spec.middle;
  TensorId shortcut = x;
  if (spec.stride != 1 || net.channels(x) != out) {
    shortcut = net.conv_bn(x, {.out = out, .stride = spec.stride});
  }
  TensorId y = net.conv_bn(x, {.out = spec.middle}, kRelu);
  y = net.conv_bn(y, {.out = spec.middle, .kernel = spec.kernel, .stride = spec.stride, .pad = 0},
                  kRelu);
  y = net.conv_bn(y, {.out = out});
  if (net.height(shortcut) != net.height(y)) {
    shortcut = net.slice(net.slice(shortcut, 2, 0, net.height(y)), 3, 0, net.width(y));
  }
  return net.activate(net.add(y, shortcut), kRelu);
}

TensorId bagnet(NetBuilder& net, TensorId x, const NetOptions& options, const BagNet& row) {
  const std::int64_t first = options.scaled(64);
  x = net.conv(x, {.out = first});
  x = net.conv_bn(x, {.out = first, .kernel = 3, .pad = 0}, kRelu);
  constexpr std::array<int, 4> kDepth = {3, 4, 6, 3};
  for (std::size_t stage = 0; stage < kDepth.size(); ++stage) {
    for (int i = 0; i < kDepth[stage]; ++i) {
      x = cut_block(net, x,
                    {.middle = options.scaled(64 << stage),
                     .kernel = i == 0 ? row.first_kernels[stage] : 1,
                     .stride = i == 0 && stage < 3 ? 2 : 1});
    }
  }
  return classify(net, x, options.classes);
}

// --- HRNet ---

struct HrNet {
  const char* name;
  int first_depth;
  std::int64_t first_width;    ///< inside of the bottlenecks of the first stage
  int depth;                   ///< blocks of a branch in each module
  std::int64_t width;          ///< channels of the branch of highest resolution
  std::array<int, 3> modules;  ///< in the stages of two, three and four branches
};

constexpr HrNet kHrNets[] = {
    {"hrnet_w18_small", 1, 32, 2, 16, {1, 1, 1}},
    {"hrnet_w18_small_v2", 2, 64, 2, 18, {1, 3, 2}},
    {"hrnet_w18", 4, 64, 4, 18, {1, 4, 3}},
};

/// Branches of one network, from high to low resolution; each has half the height of the one
/// before.
using Branches = std::vector<TensorId>;

TensorId bottleneck(NetBuilder& net, TensorId x, std::int64_t middle) {
  return residual_block({.block = Block::bottleneck}, net, x, middle, 1);
}

/// What branch `from` contributes to branch `to`, brought to its size.
TensorId contribution(NetBuilder& net, const Branches& branches, std::size_t from, std::size_t to) {
  TensorId x = branches[from];
  const std::int64_t out = net.channels(branches[to]);
  if (from > to) {
    x = net.conv_bn(x, {.out = out});
    return net.resize(x, static_cast<double>(1 << (from - to)), ResizeMode::nearest);
  }
  const std::int64_t in = net.channels(x);
  for (std::size_t step = from; step < to; ++step) {
    const bool last = step + 1 == to;
    x = net.conv_bn(x, {.out = last ? out : in, .kernel = 3, .stride = 2},
                    last ? Activation{} : kRelu);
  }
  return x;
}

Branches fuse(NetBuilder& net, const Branches& branches) {
  Branches fused;
  for (std::size_t to = 0; to < branches.size(); ++to) {
    TensorId sum = contribution(net, branches, 0, to);
    for (std::size_t from = 1; from < branches.size(); ++from) {
      sum = net.add(sum, contribution(net, branches, from, to));
    }
    fused.push_back(net.activate(sum, kRelu));
  }
  return fused;
}

/// Widens every branch and adds them up from high to low resolution.
TensorId classification_head(NetBuilder& net, const Branches& branches, const NetOptions& options) {
  TensorId y = bottleneck(net, branches[0], options.scaled(32));
  for (std::size_t i = 1; i < branches.size(); ++i) {
    const std::int64_t middle = options.scaled(32 << i);
    const TensorId widened = bottleneck(net, branches[i], middle);
    y = net.add(widened,
                net.conv_bn(y, {.out = 4 * middle, .kernel = 3, .stride = 2, .bias = true}, kRelu));
  }
  y = net.conv_bn(y, {.out = options.scaled(2048), .bias = true}, kRelu);
  return classify(net, y, options.classes);
}

TensorId hrnet(NetBuilder& net, TensorId x, const NetOptions& options, const HrNet& row) {
  const std::int64_t stem = options.scaled(64);
  x = net.conv_bn(x, {.out = stem, .kernel = 3, .stride = 2}, kRelu);
  x = net.conv_bn(x, {.out = stem, .kernel = 3, .stride = 2}, kRelu);
  for (int i = 0; i < row.first_depth; ++i) {
    x = bottleneck(net, x, options.scaled(row.first_width));
  }
  const auto width = [&](std::size_t branch) { return options.scaled(row.width << branch); };
  Branches branches = {net.conv_bn(x, {.out = width(0), .kernel = 3}, kRelu)};
  for (std::size_t stage = 0; stage < row.modules.size(); ++stage) {
    const TensorId lowest = stage == 0 ? x : branches.back();
    branches.push_back(
        net.conv_bn(lowest, {.out = width(stage + 1), .kernel = 3, .stride = 2}, kRelu));
    for (int module = 0; module < row.modules[stage]; ++module) {
      for (TensorId& branch : branches) {
        for (int i = 0; i < row.depth; ++i)
          branch = residual_block({.block = Block::basic}, net, branch, net.channels(branch), 1);
      }
      branches = fuse(net, branches);
    }
  }
  return classification_head(net, branches, options);
}

}  // namespace

void add_resnet(ZooList& zoo) {
  using enum Block;
  const std::vector<ResNet> plain{
      {"resnet18", basic, {2, 2, 2, 2}},        {"resnet34", basic, {3, 4, 6, 3}},
      {"resnet50", bottleneck, {3, 4, 6, 3}},   {"resnet101", bottleneck, {3, 4, 23, 3}},
      {"resnet152", bottleneck, {3, 8, 36, 3}},
  };
  const std::vector<ResNet> grouped{
      {"resnext50_32x4d", bottleneck, {3, 4, 6, 3}, 32, 4},
      {"resnext101_32x8d", bottleneck, {3, 4, 23, 3}, 32, 8},
      {"resnext101_64x4d", bottleneck, {3, 4, 23, 3}, 64, 4},
  };
  const std::vector<ResNet> wide{
      {"wide_resnet50_2", bottleneck, {3, 4, 6, 3}, 1, 128},
      {"wide_resnet101_2", bottleneck, {3, 4, 23, 3}, 1, 128},
  };
  const std::vector<ResNet> squeezed{
      {"se_resnet18", basic, {2, 2, 2, 2}, 1, 64, 16},
      {"se_resnet34", basic, {3, 4, 6, 3}, 1, 64, 16},
      {"se_resnet50", bottleneck, {3, 4, 6, 3}, 1, 64, 16},
      {"se_resnet101", bottleneck, {3, 4, 23, 3}, 1, 64, 16},
      {"se_resnet152", bottleneck, {3, 8, 36, 3}, 1, 64, 16},
  };
  const std::vector<ResNet> small{
      {"resnet8", basic, {1, 1, 1}},  {"resnet20", basic, {3, 3, 3}},
      {"resnet32", basic, {5, 5, 5}}, {"resnet44", basic, {7, 7, 7}},
      {"resnet56", basic, {9, 9, 9}}, {"resnet110", basic, {18, 18, 18}},
  };
  const std::vector<ResNet> unshrunk{
      {"resnet18_small", basic, {2, 2, 2, 2}},
      {"resnet34_small", basic, {3, 4, 6, 3}},
      {"resnet50_small", bottleneck, {3, 4, 6, 3}},
  };
  add_rows(zoo, {.family = "resnet"}, plain, build_large);
  add_rows(zoo, {.family = "resnext"}, grouped, build_large);
  add_rows(zoo, {.family = "wide_resnet"}, wide, build_large);
  add_rows(zoo, {.family = "se_resnet"}, squeezed, build_large);
  add_rows(zoo, {.family = "resnet_small", .image = 32, .classes = 10}, small, build_small);
  add_rows(zoo, {.family = "resnet_small", .image = 32, .classes = 10}, unshrunk, build_unshrunk);
  add_rows(zoo, {.family = "res2net"}, kRes2Nets, res2net);
  add_rows(zoo, {.family = "bagnet"}, kBagNets, bagnet);
  add_rows(zoo, {.family = "hrnet"}, kHrNets, hrnet);
}

}  // namespace fleetfit::graph
