#include <algorithm>
#include <vector>

#include "graph/zoo/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {

namespace {

enum class Block : std::uint8_t { basic, bottleneck };
enum class Stem : std::uint8_t { large_image, small_image };

struct ResNet {
  const char* name;
  const char* family;
  Block block;
  std::vector<int> depths;  ///< blocks of each stage; the channels double from one to the next
  std::int64_t groups = 1;
  std::int64_t group_width = 64;  ///< inner channels of a bottleneck: groups x this / 64 of its own
  std::int64_t se_reduction = 0;  ///< 0: no squeeze-excite
  Stem stem = Stem::large_image;
};

const std::vector<ResNet>& resnets() {
  using enum Block;
  static const std::vector<ResNet> all{
      {"resnet18", "resnet", basic, {2, 2, 2, 2}},
      {"resnet34", "resnet", basic, {3, 4, 6, 3}},
      {"resnet50", "resnet", bottleneck, {3, 4, 6, 3}},
      {"resnet101", "resnet", bottleneck, {3, 4, 23, 3}},
      {"resnet152", "resnet", bottleneck, {3, 8, 36, 3}},
      {"resnext50_32x4d", "resnext", bottleneck, {3, 4, 6, 3}, 32, 4},
      {"resnext101_32x8d", "resnext", bottleneck, {3, 4, 23, 3}, 32, 8},
      {"resnext101_64x4d", "resnext", bottleneck, {3, 4, 23, 3}, 64, 4},
      {"wide_resnet50_2", "wide_resnet", bottleneck, {3, 4, 6, 3}, 1, 128},
      {"wide_resnet101_2", "wide_resnet", bottleneck, {3, 4, 23, 3}, 1, 128},
      {"se_resnet18", "se_resnet", basic, {2, 2, 2, 2}, 1, 64, 16},
      {"se_resnet34", "se_resnet", basic, {3, 4, 6, 3}, 1, 64, 16},
      {"se_resnet50", "se_resnet", bottleneck, {3, 4, 6, 3}, 1, 64, 16},
      {"se_resnet101", "se_resnet", bottleneck, {3, 4, 23, 3}, 1, 64, 16},
      {"se_resnet152", "se_resnet", bottleneck, {3, 8, 36, 3}, 1, 64, 16},
      {"resnet8", "resnet_small", basic, {1, 1, 1}, 1, 64, 0, Stem::small_image},
      {"resnet20", "resnet_small", basic, {3, 3, 3}, 1, 64, 0, Stem::small_image},
      {"resnet32", "resnet_small", basic, {5, 5, 5}, 1, 64, 0, Stem::small_image},
      {"resnet44", "resnet_small", basic, {7, 7, 7}, 1, 64, 0, Stem::small_image},
      {"resnet56", "resnet_small", basic, {9, 9, 9}, 1, 64, 0, Stem::small_image},
      {"resnet110", "resnet_small", basic, {18, 18, 18}, 1, 64, 0, Stem::small_image},
  };
  return all;
}

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

TensorId build(const ResNet& spec, NetBuilder& net, TensorId x, const NetOptions& options) {
  const bool small = spec.stem == Stem::small_image;
  std::int64_t planes = small ? 16 : 64;
  const std::int64_t stem = options.scaled(planes);
  if (small) {
    x = net.conv_bn(x, {.out = stem, .kernel = 3}, kRelu);
  } else {
    x = net.conv_bn(x, {.out = stem, .kernel = 7, .stride = 2}, kRelu);
    x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  }
  for (std::size_t stage = 0; stage < spec.depths.size(); ++stage, planes *= 2) {
    for (int i = 0; i < spec.depths[stage]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = residual_block(spec, net, x, options.scaled(planes), stride);
    }
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_resnet(ZooList& zoo) {
  for (const ResNet& spec : resnets()) {
    const bool small = spec.stem == Stem::small_image;
    zoo.push_back({.name = spec.name,
                   .family = spec.family,
                   .image = small ? 32 : 224,
                   .classes = small ? 10 : 1000,
                   .build = [spec](NetBuilder& net, TensorId x, const NetOptions& options) {
                     return build(spec, net, x, options);
                   }});
  }
}

}  // namespace fleetfit::graph
