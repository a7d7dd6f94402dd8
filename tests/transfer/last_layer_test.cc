#include "fleetfit/transfer/last_layer.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::transfer {
namespace {

using predict::DenseNetwork;
using predict::Transform;

constexpr std::size_t kFeatures = 6;
constexpr std::size_t kHidden = 12;

/// A network with a hidden layer of random weights; its last layer has these.
DenseNetwork network_with(const std::vector<float>& last, Transform transform) {
  core::Random random(4);
  predict::DenseLayer hidden{.inputs = kFeatures, .outputs = kHidden};
  for (std::size_t i = 0; i < kFeatures * kHidden; ++i)
    hidden.weights.push_back(static_cast<float>(random.uniform(-1, 1)));
  hidden.bias.assign(kHidden, 0.3F);
  DenseNetwork::Parts parts{
      .inputs = {.mean = std::vector(kFeatures, 0.5), .scale = std::vector(kFeatures, 0.25)},
      .layers = {hidden, {.inputs = kHidden, .outputs = 1, .weights = last, .bias = {0.5F}}},
      .output = {.transform = transform, .offset = 1, .scale = 0.5, .min = 1e-6, .max = 1e6}};
  return *DenseNetwork::make(std::move(parts));
}

std::vector<float> positive_weights() {
  core::Random random(5);
  std::vector<float> weights;
  for (std::size_t i = 0; i < kHidden; ++i)
    weights.push_back(static_cast<float>(random.uniform(0.2, 1)));
  return weights;
}

std::vector<double> random_rows(std::size_t count, std::uint64_t seed) {
  core::Random random(seed);
  std::vector<double> rows(count * kFeatures);
  for (auto& cell : rows) cell = random.uniform();
  return rows;
}

std::vector<double> answers(const DenseNetwork& network, const std::vector<double>& rows) {
  std::vector<double> out(rows.size() / kFeatures);
  network.predict({rows, kFeatures}, out);
  return out;
}

class LastLayer : public testing::TestWithParam<Transform> {};

TEST_P(LastLayer, IsBentToATargetThatWeighsOneHiddenValueOtherwise) {
  const auto weights = positive_weights();
  auto other = weights;
  other[3] *= 6;
  const auto proxy = network_with(weights, GetParam());
  const auto target = network_with(other, GetParam());
  const auto rows = random_rows(60, 1);

  const auto adapted = adapt_last_layer(proxy, {rows, kFeatures}, answers(target, rows)).value();

  const auto others = random_rows(300, 2);
  const auto truth = answers(target, others);
  const double before = *core::spearman(answers(proxy, others), truth);
  const double after = *core::spearman(answers(adapted.network, others), truth);
  EXPECT_LT(before, 0.95);
  EXPECT_GT(after, 0.99);
  EXPECT_FALSE(adapted.keeps_proxy);
  EXPECT_GE(adapted.changed, 1u);
  EXPECT_EQ(adapted.network.parts().layers[0].weights, proxy.parts().layers[0].weights);
}

TEST_P(LastLayer, StaysThatOfTheProxyButForAFactorIfSamplesAgree) {
  const auto proxy = network_with(positive_weights(), GetParam());
  const auto rows = random_rows(60, 1);
  auto latency_ms = answers(proxy, rows);
  for (auto& ms : latency_ms) ms *= 3;

  const auto adapted = adapt_last_layer(proxy, {rows, kFeatures}, latency_ms).value();

  EXPECT_TRUE(adapted.keeps_proxy);
  EXPECT_EQ(adapted.changed, 0u);
  const auto said = answers(adapted.network, rows);
  for (std::size_t i = 0; i < said.size(); ++i) EXPECT_NEAR(said[i] / latency_ms[i], 1, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Transforms, LastLayer,
                         testing::Values(Transform::plain, Transform::logarithm));

TEST(LastLayerOfANetwork, RefusesRowsThatDoNotFit) {
  const auto proxy = network_with(positive_weights(), Transform::plain);
  const std::vector<double> rows(10);
  EXPECT_THAT(adapt_last_layer(proxy, {rows, 5}, std::vector(2, 1.0)).error().message,
              testing::HasSubstr("the network takes 6 features"));
}

}  // namespace
}  // namespace fleetfit::transfer
