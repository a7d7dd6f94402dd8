#include <gtest/gtest.h>

#include <string>

#include "fleetfit/graph/zoo.h"

namespace fleetfit::graph {
namespace {

/// As published by torchvision, timm or the authors, for the network's own image size.
struct Published {
  const char* name;
  double parameters;  ///< in millions
  double macs;        ///< multiply-accumulates in millions; 0: none published that is complete
  int per_norm = 0;   ///< how many of them are counted for each element of a batch norm
};

constexpr Published kPublished[] = {
    {"bagnet9", 15.689, 16049, 2},
    {"bagnet17", 16.213, 15769, 2},
    {"bagnet33", 18.310, 16372, 2},
    {"convmixer_768_32", 21.11, 0},
    {"convmixer_1024_20_ks9_p14", 24.38, 0},
    {"convnext_tiny", 28.59, 4456},
    {"convnext_small", 50.22, 8684},
    {"convnext_base", 88.59, 15355},
    {"convnext_large", 197.77, 34361},
    {"cspresnet50", 21.62, 4540, 2},
    {"cspresnext50", 20.57, 4050, 2},
    {"cspdarknet53", 27.64, 6570, 2},
    {"darknet19", 20.842, 2790},
    {"darknet53", 41.610, 7130},
    {"deit_tiny", 5.72, 1258},
    {"deit_small", 22.05, 4608},
    {"deit_base", 86.57, 17580},
    {"espnetv2_x0_5", 1.2413, 0},
    {"espnetv2_x1_0", 1.67, 85.72},
    {"espnetv2_x1_25", 1.96, 123.39},
    {"espnetv2_x1_5", 2.3149, 168.6},
    {"espnetv2_x2_0", 3.4981, 284.8},
    {"ghostnet_x0_5", 2.59, 42},
    {"ghostnet_x1_0", 5.18, 142},
    {"ghostnet_x1_3", 7.36, 226},
    {"hardnet39ds", 3.488, 440, 2},
    {"hardnet68ds", 4.181, 800, 2},
    {"hardnet68", 17.565, 4300},
    {"hardnet85", 36.670, 9100},
    {"hrnet_w18_small", 13.19, 1610, 2},
    {"hrnet_w18_small_v2", 15.60, 2620, 2},
    {"hrnet_w18", 21.30, 4320, 2},
    {"inception_v4", 42.680, 12280, 2},
    {"inception_resnet_v2", 55.843, 13180, 2},
    {"lcnet_x0_35", 1.64, 29, 2},
    {"lcnet_x0_5", 1.88, 47, 2},
    {"lcnet_x0_75", 2.36, 99, 2},
    {"lcnet_x1_0", 2.95, 161, 2},
    {"lcnet_x1_5", 4.50, 342, 2},
    {"lenet5", 0.061706, 0.41652},
    {"mixnet_s", 4.1346, 256, 2},
    {"mixnet_m", 5.0144, 360, 2},
    {"mixnet_l", 7.3293, 565, 2},
    {"mixer_s32", 19.10, 1000},
    {"mixer_s16", 18.53, 3790},
    {"mixer_b32", 60.29, 3240},
    {"mixer_b16", 59.88, 12620},
    {"mobileone_s0", 2.08, 275},
    {"mobileone_s1", 4.76, 825},
    {"mobileone_s2", 7.81, 1299},
    {"mobileone_s3", 10.08, 1896},
    {"mobileone_s4", 14.84, 2978},
    {"mobilevit_xxs", 1.27, 420, 2},
    {"mobilevit_xs", 2.32, 1050, 2},
    {"mobilevit_s", 5.58, 2030, 2},
    {"peleenet", 2.8022, 508},
    {"regnet_x_400mf", 5.50, 413.5},
    {"regnet_x_800mf", 7.26, 800},
    {"regnet_x_1_6gf", 9.19, 1603},
    {"regnet_x_3_2gf", 15.30, 3177},
    {"regnet_x_8gf", 39.57, 7995},
    {"regnet_x_16gf", 54.28, 15941},
    {"regnet_x_32gf", 107.81, 31736},
    {"regnet_y_400mf", 4.34, 401.7},
    {"regnet_y_800mf", 6.43, 834},
    {"regnet_y_1_6gf", 11.20, 1612},
    {"regnet_y_3_2gf", 19.44, 3176},
    {"regnet_y_8gf", 39.38, 8473},
    {"regnet_y_16gf", 83.59, 15912},
    {"regnet_y_32gf", 145.05, 32280},
    {"repvgg_a0", 8.31, 1400},
    {"repvgg_a1", 12.79, 2400},
    {"repvgg_a2", 25.50, 5100},
    {"repvgg_b0", 14.34, 3100},
    {"repvgg_b1", 51.83, 11800},
    {"res2net50_48w_2s", 25.29, 4180, 2},
    {"res2net50_26w_4s", 25.70, 4280, 2},
    {"res2net50_14w_8s", 25.06, 4210, 2},
    {"res2net101_26w_4s", 45.21, 8100, 2},
    {"shufflenet_v1_g1_x1_0", 1.5319, 143},
    {"shufflenet_v1_g2_x1_0", 1.7338, 140},
    {"shufflenet_v1_g3_x0_5", 0.71832, 38},
    {"shufflenet_v1_g3_x1_0", 1.8657, 137},
    {"shufflenet_v1_g4_x1_0", 1.9683, 133},
    {"shufflenet_v1_g8_x1_0", 2.4348, 137},
    {"shufflenet_v2_x0_5", 1.367, 41},
    {"shufflenet_v2_x1_0", 2.279, 144.9},
    {"shufflenet_v2_x1_5", 3.504, 297},
    {"shufflenet_v2_x2_0", 7.394, 583},
    {"vit_b_16", 86.57, 17560},
    {"vit_b_32", 88.22, 4410},
    {"vit_l_32", 306.54, 15380},
    {"vovnet27_slim", 3.5257, 2187, 2},
    {"vovnet39", 22.600, 7090, 2},
    {"vovnet57", 36.640, 8950, 2},
};

double millions(std::int64_t count) { return static_cast<double>(count) / 1e6; }

/// Trained numbers: all constants with a dimension, without the statistics of batch norms.
double parameters(const Graph& graph) {
  std::int64_t total = 0;
  for (const Node& node : graph.nodes) {
    if (std::holds_alternative<Resize>(node.op)) continue;
    const bool norm = std::holds_alternative<BatchNorm>(node.op);
    for (std::size_t i = 0; i < node.inputs.size() && !(norm && i == 3); ++i) {
      if (node.inputs[i] == kNoTensor) continue;
      const Tensor& tensor = graph.tensor(node.inputs[i]);
      if (tensor.is_constant() && tensor.dtype == DType::f32 && !tensor.shape->empty()) {
        total += elements(*tensor.shape);
      }
    }
  }
  return millions(total);
}

double multiply_accumulates(const Graph& graph, int per_norm) {
  std::int64_t total = 0;
  for (const Node& node : graph.nodes) {
    const auto shape = [&](TensorId id) -> const Shape& { return *graph.tensor(id).shape; };
    std::int64_t per_output = 0;
    if (std::holds_alternative<Conv>(node.op)) {
      per_output = elements(shape(node.inputs[1])) / shape(node.inputs[1])[0];
    } else if (std::holds_alternative<Gemm>(node.op) || std::holds_alternative<MatMul>(node.op)) {
      per_output = shape(node.inputs[0]).back();
    } else if (std::holds_alternative<BatchNorm>(node.op)) {
      per_output = per_norm;
    }
    if (per_output > 0) total += per_output * elements(shape(node.outputs[0]));
  }
  return millions(total);
}

class PublishedSize : public testing::TestWithParam<Published> {};

TEST_P(PublishedSize, IsThatOfTheBuiltNetwork) {
  const Published& published = GetParam();
  const Result<Graph> graph = build_zoo_network(published.name);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_NEAR(parameters(*graph), published.parameters, 0.005 * published.parameters);
  if (published.macs > 0) {
    EXPECT_NEAR(multiply_accumulates(*graph, published.per_norm), published.macs,
                0.03 * published.macs);
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, PublishedSize, testing::ValuesIn(kPublished),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace fleetfit::graph
