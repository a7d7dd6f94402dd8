#include "fleetfit/learned/feature_scaling.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace fleetfit::learned {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

DeviceFeatures features_in(std::string text) {
  return *device_features_of(*core::parse_csv(std::move(text), "f.csv"), "f.csv");
}

/// Two latencies: the second device is e^2 times as slow, and another network is the slower one.
DeviceFeatures two_devices() {
  return features_in(fmt::format("device,net:a,net:b,spec:cores\nx,{},{},0\ny,{},{},{}\n",
                                 std::exp(1.0), std::exp(-1.0), std::exp(1.0), std::exp(3.0),
                                 std::exp(2.0) - 1));
}

std::vector<double> scaled(const FeatureScaling& scaling, std::vector<double> row) {
  std::vector<double> out(scaling.inputs());
  scaling.scale(row, out);
  return out;
}

TEST(FeatureScaling, TellsSpeedFromShape) {
  const auto scaling = *FeatureScaling::fit(two_devices());

  // By hand: means of logarithms 1 and 1, levels -1 and 1, the rest of a (1, -1), of b (-1, 1).
  const auto rows = *scaling.scale(two_devices());
  EXPECT_THAT(scaling.input_names(),
              ElementsAre("slowness", "net:a", "net:b", "spec:cores", "missing net:a",
                          "missing net:b", "missing spec:cores"));
  const auto near = [](double value) { return DoubleNear(value, 1e-12); };
  EXPECT_THAT(rows, ElementsAre(near(-1), near(1), near(-1), near(-1), 0, 0, 0,  //
                                near(1), near(-1), near(1), near(1), 0, 0, 0));
}

TEST(FeatureScaling, MarksWhatIsMissing) {
  const auto scaling = *FeatureScaling::fit(two_devices());

  const auto row = scaled(scaling, {std::exp(3.0), kMissing, kMissing});

  EXPECT_DOUBLE_EQ(row[0], 2);  // all that is known of its speed is a, two above the mean
  EXPECT_THAT(std::vector(row.begin() + 1, row.end()), ElementsAre(0, 0, 0, 0, 1, 1));
}

TEST(FeatureScaling, LeavesAConstantColumnAtZero) {
  const auto scaling = *FeatureScaling::fit(features_in("device,spec:cores\nx,4\ny,4\n"));
  EXPECT_THAT(scaled(scaling, {4}), ElementsAre(0, 0));
}

TEST(FeatureScaling, FindsColumnsInAnyOrderAndIgnoresOthers) {
  const auto scaling = *FeatureScaling::fit(features_in("device,spec:a,spec:b\nx,1,5\ny,2,9\n"));
  const auto other = features_in("device,spec:c,spec:b,spec:a\nz,7,5,1\n");

  EXPECT_EQ(*scaling.scale(other), scaled(scaling, {1, 5}));
  EXPECT_THAT(*scaling.row_of(other, 0), ElementsAre(1, 5));
}

TEST(FeatureScaling, RefusesAFileThatLacksAColumn) {
  const auto scaling = *FeatureScaling::fit(two_devices());
  const auto refusal = scaling.scale(features_in("device,net:a,spec:cores\nx,1,2\n"));
  EXPECT_EQ(refusal.error().message, "f.csv: there is no column 'net:b'");
  EXPECT_EQ(refusal.error().code, ErrorCode::invalid_input);
}

TEST(FeatureScaling, RefusesFeaturesOfAnotherSpaceOrVersionByName) {
  const auto scaling = *FeatureScaling::fit(features_in("device,ref:fbnet@1:00\nx,1\n"));
  EXPECT_THAT(scaling.scale(features_in("device,ref:nasbench201@1:00\nx,1\n")).error().message,
              HasSubstr("is of the space nasbench201 version 1, wanted is fbnet version 1"));
  EXPECT_THAT(scaling.scale(features_in("device,ref:fbnet@2:00\nx,1\n")).error().message,
              HasSubstr("is of the space fbnet version 2, wanted is fbnet version 1"));
  EXPECT_THAT(scaling.scale(features_in("device,ref:fbnet@1:11\nx,1\n")).error().message,
              testing::EndsWith("there is no column 'ref:fbnet@1:00'"));
}

TEST(FeatureScaling, RefusesADeviceOfWhichNothingIsKnown) {
  const auto scaling = *FeatureScaling::fit(two_devices());
  const auto other = features_in("device,net:a,net:b,spec:cores\nx,1,1,1\nnew one,,,\n");
  EXPECT_EQ(scaling.scale(other).error().message,
            "f.csv: all features of the device 'new one' are missing");
  EXPECT_FALSE(scaling.row_of(other, 1));
}

TEST(FeatureScaling, NeedsAValueInEachColumn) {
  EXPECT_EQ(FeatureScaling::fit(features_in("device,net:a,net:b\nx,1,\n")).error().message,
            "f.csv: no device has a value in column 'net:b'");
}

TEST(FeatureScaling, IsTheSameAfterItWasKept) {
  const auto scaling = *FeatureScaling::fit(two_devices());
  const auto json = scaling.to_json();
  const auto again = *FeatureScaling::from_json(core::JsonView(json, "m.json"));

  EXPECT_EQ(again.fingerprint(), scaling.fingerprint());
  EXPECT_EQ(*again.scale(two_devices()), *scaling.scale(two_devices()));
  EXPECT_NE(FeatureScaling::fit(features_in("device,net:a\nx,1\n"))->fingerprint(),
            scaling.fingerprint());
}

TEST(FeatureScaling, RefusesBrokenJsonNamingTheField) {
  const auto refusal = [](auto change) {
    auto json = FeatureScaling::fit(two_devices())->to_json();
    change(json);
    return FeatureScaling::from_json(core::JsonView(json, "m.json")).error().message;
  };
  using Json = nlohmann::json;
  EXPECT_THAT(refusal([](Json& json) { json["columns"][1]["spread"] = 0; }),
              HasSubstr("columns[1]: spread is not positive"));
  EXPECT_THAT(refusal([](Json& json) { json["columns"][1]["name"] = "b"; }),
              HasSubstr("columns[1]: column 'b' is no feature"));
  EXPECT_THAT(refusal([](Json& json) { json["columns"][1] = json["columns"][0]; }),
              HasSubstr("columns[1]: the column is there twice"));
  EXPECT_THAT(refusal([](Json& json) { json["columns"] = Json::array(); }), HasSubstr("empty"));
  EXPECT_THAT(refusal([](Json& json) { json.erase("level_spread"); }), HasSubstr("level_spread"));
}

}  // namespace
}  // namespace fleetfit::learned
