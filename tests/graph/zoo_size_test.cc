#include <gtest/gtest.h>

#include <string>

#include "fleetfit/graph/zoo.h"

namespace fleetfit::graph {
namespace {

/// As published for the network's own image size: by torchvision where it has the network, else by
/// timm, pytorchcv or the paper.
struct KnownSize {
  const char* name;
  std::int64_t parameters;
  double macs = 0;        ///< multiply-accumulates in millions; 0: none known
  std::int64_t unit = 1;  ///< that the parameters are rounded to
};

constexpr std::int64_t kTenThousand = 10'000;
constexpr std::int64_t kHundredThousand = 100'000;

constexpr KnownSize kKnownSizes[] = {
    {"alexnet", 61'100'840, 714},
    {"densenet121", 7'978'856, 2834},
    {"densenet161", 28'681'000, 7728},
    {"densenet169", 14'149'480, 3360},
    {"densenet201", 20'013'928, 4291},
    {"densenet40_k12", 1'000'000, 0, kHundredThousand},
    {"dpn68", 12'611'602, 2350},
    {"dpn92", 37'670'000, 6540, kTenThousand},
    {"dpn98", 61'570'728, 11730},
    {"efficientnet_b0", 5'288'548, 385.8},
    {"efficientnet_b1", 7'794'184, 687},
    {"efficientnet_b2", 9'109'994, 1088},
    {"efficientnet_b3", 12'233'232, 1827},
    {"efficientnet_b4", 19'341'616, 4394},
    {"efficientnet_b5", 30'389'784, 10266},
    {"efficientnet_b6", 43'040'704, 19068},
    {"efficientnet_b7", 66'347'960, 37746},
    {"efficientnet_lite0", 4'652'008},
    {"efficientnet_lite1", 5'416'680},
    {"efficientnet_lite2", 6'092'072},
    {"efficientnet_lite3", 8'197'096},
    {"efficientnet_lite4", 13'006'568},
    {"efficientnet_v2_s", 21'458'488, 8366},
    {"efficientnet_v2_m", 54'139'356, 24582},
    {"efficientnet_v2_l", 118'515'272, 56080},
    {"fbnet_a", 4'300'000, 249.9, kHundredThousand},
    {"fbnet_b", 4'800'000, 295.6, kHundredThousand},
    {"fbnet_c", 5'572'200, 383},
    {"googlenet", 6'624'904, 1498},
    {"inception_v3", 23'834'568, 5713},
    {"mnasnet0_5", 2'218'512, 104},
    {"mnasnet0_75", 3'170'208, 215},
    {"mnasnet1_0", 4'383'312, 314.2},
    {"mnasnet1_3", 6'282'256, 526},
    {"mobilenet_v1", 4'231'976, 569},
    {"mobilenet_v1_x0_75", 2'585'560, 325},
    {"mobilenet_v1_x0_5", 1'331'592, 149},
    {"mobilenet_v1_x0_25", 470'072, 41},
    {"mobilenet_v2", 3'504'872, 300.8},
    {"mobilenet_v2_x0_5", 1'970'000, 97, kTenThousand},
    {"mobilenet_v2_x0_75", 2'640'000, 209, kTenThousand},
    {"mobilenet_v2_x1_4", 6'110'000, 582, kTenThousand},
    {"mobilenet_v2_small", 2'236'682},
    {"mobilenet_v3_large", 5'483'032, 216.6},
    {"mobilenet_v3_small", 2'542'856, 56.5},
    {"ofa_mbv3_flops_595m", 9'100'000, 595, kHundredThousand},
    {"ofa_mbv3_note8_31ms", 4'600'000, 0, kHundredThousand},
    {"ofa_mbv3_note8_22ms", 4'300'000, 0, kHundredThousand},
    {"proxylessnas_cpu", 4'361'648, 439},
    {"proxylessnas_gpu", 7'119'848, 465},
    {"proxylessnas_mobile", 4'080'512, 320},
    {"resnet18", 11'689'512, 1814},
    {"resnet34", 21'797'672, 3664},
    {"resnet50", 25'557'032, 4089},
    {"resnet101", 44'549'160, 7801},
    {"resnet152", 60'192'808, 11514},
    {"resnext50_32x4d", 25'028'904, 4230},
    {"resnext101_32x8d", 88'791'336, 16414},
    {"resnext101_64x4d", 83'455'272, 15460},
    {"resnet20", 272'474, 41},
    {"resnet56", 855'770, 126},
    {"resnet110", 1'730'714, 254},
    {"se_resnet18", 11'778'592},
    {"se_resnet34", 21'958'868},
    {"se_resnet50", 28'088'024, 4100},
    {"se_resnet101", 49'326'872},
    {"se_resnet152", 66'821'848},
    {"squeezenet1_0", 1'248'424, 819},
    {"squeezenet1_1", 1'235'496, 349},
    {"vgg11", 132'863'336, 7609},
    {"vgg11_bn", 132'868'840, 7609},
    {"vgg13", 133'047'848, 11308},
    {"vgg13_bn", 133'053'736, 11308},
    {"vgg16", 138'357'544, 15470},
    {"vgg16_bn", 138'365'992, 15470},
    {"vgg19", 143'667'240, 19632},
    {"vgg19_bn", 143'678'248, 19632},
    {"wide_resnet50_2", 68'883'240, 11398},
    {"wide_resnet101_2", 126'886'696, 22753},
    {"xception", 22'855'952, 8400},
};

/// Trained numbers: the statistics of batch norms are none.
std::int64_t parameters(const Graph& graph) {
  std::int64_t total = 0;
  for (const Node& node : graph.nodes) {
    const std::size_t trained = std::holds_alternative<BatchNorm>(node.op) ? 3 : node.inputs.size();
    for (std::size_t i = 0; i < trained; ++i) {
      if (node.inputs[i] == kNoTensor) continue;
      const Tensor& tensor = graph.tensor(node.inputs[i]);
      if (tensor.is_constant() && tensor.dtype == DType::f32) total += elements(*tensor.shape);
    }
  }
  return total;
}

double millions_of_macs(const Graph& graph) {
  std::int64_t total = 0;
  for (const Node& node : graph.nodes) {
    const bool conv = std::holds_alternative<Conv>(node.op);
    if (!conv && !std::holds_alternative<Gemm>(node.op)) continue;
    const Shape& weights = *graph.tensor(node.inputs[1]).shape;
    total += elements(*graph.tensor(node.outputs[0]).shape) * (elements(weights) / weights[0]);
  }
  return static_cast<double>(total) / 1e6;
}

class ZooSize : public testing::TestWithParam<KnownSize> {};

TEST_P(ZooSize, IsAsPublished) {
  const KnownSize& known = GetParam();
  const Result<Graph> graph = build_zoo_network(known.name);
  ASSERT_TRUE(graph) << graph.error().message;
  const double rounding = static_cast<double>(known.unit) / 2;
  const auto counted = static_cast<double>(parameters(*graph));
  EXPECT_NEAR(counted, static_cast<double>(known.parameters), rounding);
  const double macs = millions_of_macs(*graph);
  if (known.macs > 0) {
    EXPECT_NEAR(macs / known.macs, 1, 0.03) << macs;
  }
}

INSTANTIATE_TEST_SUITE_P(Published, ZooSize, testing::ValuesIn(kKnownSizes),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace fleetfit::graph
