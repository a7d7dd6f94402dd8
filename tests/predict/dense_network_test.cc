#include "fleetfit/predict/dense_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "fleetfit/core/random.h"

namespace fleetfit::predict {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

// Two features, two hidden neurons.
DenseNetwork::Parts small_parts() {
  return {.inputs = {.mean = {1, 2}, .scale = {2, 4}},
          .layers = {{.inputs = 2, .outputs = 2, .weights = {1, -1, 0.5, 2}, .bias = {0.5, -1}},
                     {.inputs = 2, .outputs = 1, .weights = {2, -3}, .bias = {4}}},
          .output = {.offset = 1, .scale = 2, .min = 0.5, .max = 100}};
}

DenseNetwork random_network(std::size_t features, std::size_t width) {
  core::Random random(7);
  DenseNetwork::Parts parts{
      .inputs = {.transform = Transform::logarithm,
                 .mean = std::vector<double>(features, 1.5),
                 .scale = std::vector<double>(features, 0.5)},
      .output = {
          .transform = Transform::logarithm, .offset = 0.5, .scale = 0.1, .min = 1e-3, .max = 1e3}};
  for (const auto& [inputs, outputs] :
       {std::pair{features, width}, std::pair{width, width}, std::pair{width, std::size_t{1}}}) {
    DenseLayer layer{.inputs = inputs, .outputs = outputs};
    for (std::size_t i = 0; i < inputs * outputs; ++i)
      layer.weights.push_back(static_cast<float>(random.uniform(-0.5, 0.5)));
    for (std::size_t i = 0; i < outputs; ++i)
      layer.bias.push_back(static_cast<float>(random.uniform(-0.5, 0.5)));
    parts.layers.push_back(std::move(layer));
  }
  return DenseNetwork::make(std::move(parts)).value();
}

Result<std::unique_ptr<Regressor>> read(const Json& json, std::size_t features = 2) {
  return regressor_from_json(core::JsonView(json, "p.json"), features);
}

TEST(DenseNetwork, GivesWhatIsWorkedOutByHand) {
  const auto network = DenseNetwork::make(small_parts()).value();
  // Scaled to (1, 2): hidden 2.5 and 2, number 5 - 6 + 4 = 3.
  EXPECT_DOUBLE_EQ(network.predict_one(std::vector{3.0, 10.0}), 1 + 2 * 3);
  // Scaled to (1, -2): hidden 0.5 and -6, which ReLU makes 0, number 1 + 4 = 5.
  EXPECT_DOUBLE_EQ(network.predict_one(std::vector{3.0, -6.0}), 1 + 2 * 5);
}

TEST(DenseNetwork, TakesLogarithmsOfInputsAndOutput) {
  auto parts = small_parts();
  parts.inputs = {.transform = Transform::logarithm, .mean = {0, 0}, .scale = {1, 1}};
  parts.output = {
      .transform = Transform::logarithm, .offset = 1, .scale = 0.5, .min = 1, .max = 1e6};
  const auto network = DenseNetwork::make(parts).value();
  // ln(1 + (e - 1)) = 1 and -ln(1 + (e^2 - 1)) = -2: the number is 5, as above.
  const std::vector row{std::exp(1.0) - 1, 1 - std::exp(2.0)};
  EXPECT_NEAR(network.predict_one(row), std::exp(1 + 0.5 * 5), 1e-4);
}

TEST(DenseNetwork, StaysWithinItsRange) {
  const auto network = DenseNetwork::make(small_parts()).value();
  EXPECT_EQ(network.predict_one(std::vector{3.0, 1e9}), 0.5);
  EXPECT_EQ(network.predict_one(std::vector{1e9, -6.0}), 100);
}

TEST(DenseNetwork, DoesNotHeedAFeatureThatNeverChangedInTraining) {
  auto parts = small_parts();
  parts.inputs.scale[0] = 0;
  const auto network = DenseNetwork::make(parts).value();
  EXPECT_EQ(network.predict_one(std::vector{3.0, 10.0}),
            network.predict_one(std::vector{-70.0, 10.0}));
}

TEST(DenseNetwork, GivesARowTheSameInABatchAndAlone) {
  const auto network = random_network(5, 37);
  core::Random random(3);
  std::vector<double> values(131 * 5);
  for (double& value : values) value = random.uniform(0, 100);
  const MatrixView rows{.values = values, .columns = 5};
  std::vector<double> batch(rows.rows());
  network.predict(rows, batch);
  for (std::size_t i = 0; i < batch.size(); ++i)
    EXPECT_DOUBLE_EQ(batch[i], network.predict_one(rows.row(i))) << i;
  EXPECT_NE(batch[0], batch[1]);
}

TEST(DenseNetwork, IsTheSameAfterItWasWrittenAndRead) {
  const auto network = random_network(5, 13);
  const auto json = Json::parse(network.to_json().dump());
  const auto again = read(json, 5).value();
  EXPECT_EQ(again->features(), 5u);
  const std::vector row{1.0, 20.0, 3.0, 400.0, 0.0};
  EXPECT_EQ(again->predict_one(row), network.predict_one(row));
  EXPECT_EQ(again->to_json(), json);
}

TEST(DenseNetwork, WritesWeightsAsTheirBytes) {
  auto parts = small_parts();
  parts.layers[1].weights = {1, -2};  // 0x3f800000 and 0xc0000000, the lowest byte first
  const auto json = DenseNetwork::make(parts).value().to_json();
  EXPECT_EQ(json["layers"][1]["weights"], "AACAPwAAAMA=");
}

struct Damage {
  const char* path;
  Json value;
  const char* complaint;
};

TEST(DenseNetwork, RefusesDamagedFilesNamingThePlace) {
  const auto whole = DenseNetwork::make(small_parts()).value().to_json();
  ASSERT_TRUE(read(whole));
  const Damage damages[] = {
      {"/version", 2, "version"},
      {"/version", "1", "version"},
      {"/inputs/transform", "square", "inputs.transform"},
      {"/inputs/mean", Json::array({1}), "1 means and 2 scales"},
      {"/inputs/mean/0", nullptr, "mean"},
      {"/inputs/scale/1", -1, "scale is negative"},
      {"/layers", Json::array(), "layers: there are none"},
      {"/layers/0/inputs", 3, "layers[0]: takes 3 numbers and gives 2, but gets 2"},
      {"/layers/0/outputs", 1000000, "layers[0].outputs"},
      {"/layers/1/weights", Json::array({1}), "layers[1].weights"},
      {"/layers/1/weights", "AACAPw==", "layers[1]: 1 weights and 1 biases"},
      {"/layers/1/weights", "AACAPwAAAM", "layers[1].weights: expected 32-bit floats in base64"},
      {"/layers/1/weights", "AACA", "layers[1].weights: expected 32-bit floats in base64"},
      {"/layers/1/weights", "AACAfwAAAMA=", "layers[1]: a weight is not finite"},
      {"/layers/1/bias", "AACAPwAAAMA=", "layers[1]: 2 weights and 2 biases"},
      {"/output/min", 0, "output: 0 to 100"},
      {"/output/max", 0.1, "output: 0.5 to 0.1"},
      {"/output/colour", "red", "colour"},
  };
  for (const auto& [path, value, complaint] : damages) {
    auto json = whole;
    json[Json::json_pointer(path)] = value;
    const auto network = read(json);
    ASSERT_FALSE(network) << path;
    EXPECT_EQ(network.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(network.error().message, HasSubstr("p.json")) << path;
    EXPECT_THAT(network.error().message, HasSubstr(complaint)) << path;
  }
  for (const char* key : {"inputs", "layers", "output", "version"}) {
    auto json = whole;
    json.erase(key);
    EXPECT_FALSE(read(json)) << key;
  }
}

TEST(DenseNetwork, RefusesRowsOfAnotherLength) {
  const auto json = DenseNetwork::make(small_parts()).value().to_json();
  EXPECT_THAT(read(json, 3).error().message, HasSubstr("takes 2 features, but there are 3"));
}

TEST(DenseNetwork, IsNotMadeOfPartsThatDoNotFit) {
  auto parts = small_parts();
  parts.layers.pop_back();
  EXPECT_THAT(DenseNetwork::make(parts).error().message, HasSubstr("the last gives 2 numbers"));
  parts = small_parts();
  parts.layers[1].bias[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(DenseNetwork::make(parts).error().message, HasSubstr("layers[1]"));
}

}  // namespace
}  // namespace fleetfit::predict
