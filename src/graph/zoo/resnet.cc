#include <algorithm>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

enum class Block : std::uint8_t { basic, bottleneck };

struct ResNet {
  const char* name;
  Block block;
  std::vector<int> depths;  ///< blocks of each stage; the channels double from one to the next
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

TensorId build_large(NetBuilder& net, TensorId x, const NetOptions& options, const ResNet& spec) {
  x = net.conv_bn(x, {.out = options.scaled(64), .kernel = 7, .stride = 2}, kRelu);
  x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
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
}

}  // namespace fleetfit::graph
