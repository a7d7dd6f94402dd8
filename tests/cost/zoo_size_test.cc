#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "fleetfit/cost/cost.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::cost {
namespace {

using namespace graph;

/// As published for the network's own image size: by torchvision where it has the network, else by
/// timm, pytorchcv or the paper.
struct KnownSize {
  const char* name;
  std::int64_t parameters;
  double macs = 0;        ///< multiply-accumulates in millions; 0: none known
  std::int64_t unit = 1;  ///< that the parameters are rounded to
  int per_norm = 0;       ///< how many of `macs` are counted for each element of a batch norm
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
    {"resnet18_small", 11'173'962, 556},
    {"resnet34_small", 21'282'122, 1160},
    {"resnet50_small", 23'520'842, 1300},
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
    {"bagnet9", 15'688'744, 16049, 1, 2},
    {"bagnet17", 16'213'032, 15769, 1, 2},
    {"bagnet33", 18'310'184, 16372, 1, 2},
    {"convmixer_768_32", 21'110'000, 0, kTenThousand},
    {"convmixer_1024_20_ks9_p14", 24'380'000, 0, kTenThousand},
    {"convnext_tiny", 28'589'128, 4456},
    {"convnext_small", 50'223'688, 8684},
    {"convnext_base", 88'591'464, 15355},
    {"convnext_large", 197'767'336, 34361},
    {"cspresnet50", 21'620'000, 4540, kTenThousand, 2},
    {"cspresnext50", 20'570'000, 4050, kTenThousand, 2},
    {"cspdarknet53", 27'640'000, 6570, kTenThousand, 2},
    {"darknet19", 20'842'376, 2790},
    {"darknet53", 41'609'928, 7130},
    {"deit_tiny", 5'720'000, 1258, kTenThousand},
    {"deit_small", 22'050'000, 4608, kTenThousand},
    {"deit_base", 86'570'000, 17580, kTenThousand},
    {"espnetv2_x0_5", 1'240'000, 0, kTenThousand},
    {"espnetv2_x1_0", 1'670'000, 85.72, kTenThousand},
    {"espnetv2_x1_25", 1'960'000, 123.39, kTenThousand},
    {"espnetv2_x1_5", 2'310'000, 168.6, kTenThousand},
    {"espnetv2_x2_0", 3'500'000, 284.8, kTenThousand},
    {"ghostnet_x0_5", 2'590'000, 42, kTenThousand},
    {"ghostnet_x1_0", 5'180'000, 142, kTenThousand},
    {"ghostnet_x1_3", 7'360'000, 226, kTenThousand},
    {"hardnet39ds", 3'488'228, 440, 1, 2},
    {"hardnet68ds", 4'180'602, 800, 1, 2},
    {"hardnet68", 17'565'348, 4300},
    {"hardnet85", 36'670'212, 9100},
    {"hrnet_w18_small", 13'190'000, 1610, kTenThousand, 2},
    {"hrnet_w18_small_v2", 15'600'000, 2620, kTenThousand, 2},
    {"hrnet_w18", 21'300'000, 4320, kTenThousand, 2},
    {"inception_v4", 42'679'816, 12280, 1, 2},
    {"inception_resnet_v2", 55'843'464, 13180, 1, 2},
    {"lcnet_x0_35", 1'640'000, 29, kTenThousand, 2},
    {"lcnet_x0_5", 1'880'000, 47, kTenThousand, 2},
    {"lcnet_x0_75", 2'360'000, 99, kTenThousand, 2},
    {"lcnet_x1_0", 2'950'000, 161, kTenThousand, 2},
    {"lcnet_x1_5", 4'500'000, 342, kTenThousand, 2},
    {"lenet5", 61'706, 0.41652},
    {"mixnet_s", 4'134'606, 256, 1, 2},
    {"mixnet_m", 5'014'382, 360, 1, 2},
    {"mixnet_l", 7'329'252, 565, 1, 2},
    {"mixer_s32", 19'100'000, 1000, kTenThousand},
    {"mixer_s16", 18'530'000, 3790, kTenThousand},
    {"mixer_b32", 60'290'000, 3240, kTenThousand},
    {"mixer_b16", 59'880'000, 12620, kTenThousand},
    {"mobileone_s0", 2'080'000, 275, kTenThousand},
    {"mobileone_s1", 4'760'000, 825, kTenThousand},
    {"mobileone_s2", 7'810'000, 1299, kTenThousand},
    {"mobileone_s3", 10'080'000, 1896, kTenThousand},
    {"mobileone_s4", 14'840'000, 2978, kTenThousand},
    {"mobilevit_xxs", 1'270'000, 420, kTenThousand, 2},
    {"mobilevit_xs", 2'320'000, 1050, kTenThousand, 2},
    {"mobilevit_s", 5'580'000, 2030, kTenThousand, 2},
    {"peleenet", 2'802'248, 508},
    {"regnet_x_400mf", 5'495'976, 413.5},
    {"regnet_x_800mf", 7'259'656, 800},
    {"regnet_x_1_6gf", 9'190'136, 1603},
    {"regnet_x_3_2gf", 15'296'552, 3177},
    {"regnet_x_8gf", 39'572'648, 7995},
    {"regnet_x_16gf", 54'278'536, 15941},
    {"regnet_x_32gf", 107'811'560, 31736},
    {"regnet_y_400mf", 4'344'144, 401.7},
    {"regnet_y_800mf", 6'432'512, 834},
    {"regnet_y_1_6gf", 11'202'430, 1612},
    {"regnet_y_3_2gf", 19'436'338, 3176},
    {"regnet_y_8gf", 39'381'472, 8473},
    {"regnet_y_16gf", 83'590'140, 15912},
    {"regnet_y_32gf", 145'046'770, 32280},
    {"repvgg_a0", 8'310'000, 1400, kTenThousand},
    {"repvgg_a1", 12'790'000, 2400, kTenThousand},
    {"repvgg_a2", 25'500'000, 5100, kTenThousand},
    {"repvgg_b0", 14'340'000, 3100, kTenThousand},
    {"repvgg_b1", 51'830'000, 11800, kTenThousand},
    {"res2net50_48w_2s", 25'290'000, 4180, kTenThousand, 2},
    {"res2net50_26w_4s", 25'700'000, 4280, kTenThousand, 2},
    {"res2net50_14w_8s", 25'060'000, 4210, kTenThousand, 2},
    {"res2net101_26w_4s", 45'210'000, 8100, kTenThousand, 2},
    {"shufflenet_v1_g1_x1_0", 1'531'936, 143},
    {"shufflenet_v1_g2_x1_0", 1'733'848, 140},
    {"shufflenet_v1_g3_x0_5", 718'324, 38},
    {"shufflenet_v1_g3_x1_0", 1'865'728, 137},
    {"shufflenet_v1_g4_x1_0", 1'968'344, 133},
    {"shufflenet_v1_g8_x1_0", 2'434'768, 137},
    {"shufflenet_v2_x0_5", 1'366'792, 41},
    {"shufflenet_v2_x1_0", 2'278'604, 144.9},
    {"shufflenet_v2_x1_5", 3'503'624, 297},
    {"shufflenet_v2_x2_0", 7'393'996, 583},
    {"vit_b_16", 86'567'656, 17560},
    {"vit_b_32", 88'224'232, 4410},
    {"vit_l_32", 306'535'400, 15380},
    {"vovnet27_slim", 3'525'736, 2187, 1, 2},
    {"vovnet39", 22'600'296, 7090, 1, 2},
    {"vovnet57", 36'640'296, 8950, 1, 2},
};

/// What publications that also count batch norms add, in millions.
double millions_in_norms(const Graph& graph, int per_norm) {
  std::int64_t total = 0;
  for (const Node& node : graph.nodes) {
    if (std::holds_alternative<BatchNorm>(node.op))
      total += per_norm * elements(*graph.tensor(node.outputs[0]).shape);
  }
  return static_cast<double>(total) / 1e6;
}

void PrintTo(const KnownSize& known, std::ostream* out) { *out << known.name; }

class ZooSize : public testing::TestWithParam<KnownSize> {};

TEST_P(ZooSize, IsAsPublished) {
  const KnownSize& known = GetParam();
  const Result<Graph> graph = build_zoo_network(known.name);
  ASSERT_TRUE(graph) << graph.error().message;
  const double rounding = static_cast<double>(known.unit) / 2;
  const NodeCost total = count_cost(*graph)->total;
  EXPECT_NEAR(static_cast<double>(total.params), static_cast<double>(known.parameters), rounding);
  const double macs =
      static_cast<double>(total.flops) / 2e6 + millions_in_norms(*graph, known.per_norm);
  if (known.macs > 0) {
    EXPECT_NEAR(macs / known.macs, 1, 0.03) << macs;
  }
}

INSTANTIATE_TEST_SUITE_P(Published, ZooSize, testing::ValuesIn(kKnownSizes),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace fleetfit::cost
