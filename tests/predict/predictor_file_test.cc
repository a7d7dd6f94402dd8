#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/predict/operator_predictor.h"
#include "predict/uncertainty.h"
#include "tests/predict/profiles.h"
#include "tests/source_dir.h"

namespace fleetfit::predict {
namespace {

using ::testing::HasSubstr;

OperatorPredictor small_predictor() {
  core::ThreadPool pool(1);
  return train_operator_predictor(
             test::make_profiles({.networks = 10, .noise = 0.1}),
             {.method = Method::boosted_trees,
              .identity = {.device = "one", .fingerprint = "abc", .date = "2026-01-01"},
              .boost = {.stages = 3, .depths = {2}, .least_child_samples = {1}}},
             pool)
      .value();
}

constexpr double kPriceOfVersion1 = 27.010580337757;  // as it was when the file was written

std::string problem(const nlohmann::json& json) {
  const auto read = kernel_predictor_from_json(core::JsonView(json, "p.json"));
  return read ? "" : read.error().message;
}

TEST(PredictorFile, IsWrittenAndReadBack) {
  const auto folder = core::ScratchFolder::create().value();
  const auto predictor = small_predictor();
  const auto file = folder.path() / "p.json";
  ASSERT_TRUE(write_kernel_predictor(file, predictor));
  const auto copy = read_kernel_predictor(file);
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ((*copy)->to_json(), predictor.to_json());
}

TEST(PredictorFile, IsRefusedWithThePlaceOfTheDamage) {
  const auto good = small_predictor().to_json();
  ASSERT_EQ(problem(good), "");
  const auto damaged = [&](const char* pointer, nlohmann::json value) {
    auto json = good;
    json[nlohmann::json::json_pointer(pointer)] = std::move(value);
    return problem(json);
  };
  EXPECT_THAT(damaged("/format", "soup"), HasSubstr("'soup' is no fleetfit-predictor"));
  EXPECT_THAT(damaged("/version", 99), HasSubstr("version 99"));
  EXPECT_THAT(damaged("/version", 0), HasSubstr("p.json: version"));
  EXPECT_THAT(damaged("/type", "oracle"), HasSubstr("'oracle' is no predictor of kernels"));
  EXPECT_THAT(damaged("/identity/feature_version", 7), HasSubstr("features are of version 7"));
  EXPECT_THAT(damaged("/identity/device", 7), HasSubstr("identity.device"));
  EXPECT_THAT(damaged("/overhead/network_ms", -1),
              HasSubstr("overhead.network_ms: is -1, below zero"));
  EXPECT_THAT(damaged("/kinds/0/kind", "zebra"),
              HasSubstr("not the features of kernels of kind zebra"));
  EXPECT_THAT(damaged("/kinds/1/kind", "conv2d"), HasSubstr("kinds[1]"));
  EXPECT_THAT(damaged("/kinds/0/when", nlohmann::json::array({{{"feature", "x"}, {"below", 3}}})),
              HasSubstr("kinds[0].when[0]: kernels of kind conv2d have no feature 'x'"));
  EXPECT_THAT(damaged("/kinds/0/model/type", "x"), HasSubstr("kinds[0].model.type"));
  EXPECT_THAT(damaged("/kinds/0/least_ms", 0), HasSubstr("kinds[0].least_ms: is 0, not above 0"));
  EXPECT_THAT(damaged("/kinds/0/low/0", 1e30), HasSubstr("kinds[0].low"));
  EXPECT_THAT(damaged("/kinds/0/known/0", nlohmann::json::array({1})),
              HasSubstr("kinds[0].known[0]"));
  EXPECT_THAT(damaged("/kinds/0/guide/weights", nlohmann::json::array()),
              HasSubstr("kinds[0].guide.weights"));
  EXPECT_THAT(damaged("/kinds/0/spread90", nullptr), HasSubstr("spread90"));
  EXPECT_THAT(damaged("/generic", 5), HasSubstr("generic"));
}

// Files of every version that was ever written go on to be read, with the same answers.
TEST(PredictorFile, OfVersion1IsRead) {
  const auto predictor =
      read_kernel_predictor(std::filesystem::path(source_dir()) / "tests/data/predictor_v1.json");
  ASSERT_TRUE(predictor) << predictor.error().message;
  EXPECT_EQ((*predictor)->identity().device, "one");
  EXPECT_EQ((*predictor)->identity().networks, 6);
  const auto price =
      (*predictor)->price(test::kernels_of(test::make_profiles({.networks = 1, .seed = 9})[0]));
  ASSERT_TRUE(price) << price.error().message;
  EXPECT_NEAR(price->latency_ms, kPriceOfVersion1, 1e-9);
}

// Forests that fleetfit grew itself, before XGBoost grew them. Expected prices are sums of leaves
// that were looked up in the file by hand.
TEST(PredictorFile, OfAForestIsRead) {
  const auto predictor =
      read_kernel_predictor(std::filesystem::path(source_dir()) / "tests/data/predictor_rf.json");
  ASSERT_TRUE(predictor) << predictor.error().message;
  const auto price_of = [&](std::vector<double> values) {
    values.resize(cost::feature_names("depthwise_conv2d").size());
    const std::vector<cost::KernelFeatures> kernels = {
        {.kind = "depthwise_conv2d", .values = std::move(values)}};
    const auto price = (*predictor)->price(kernels);
    EXPECT_TRUE(price) << price.error().message;
    EXPECT_TRUE(price->unpriced.empty());
    return price->latency_ms;
  };
  EXPECT_NEAR(
      price_of({55296, 4608,  3072, 864, 18432,  12288, 3456, 47232, 14464, 0, 4, 6144, 0,  3072,
                0,     4,     4,    96,  4,      4,     96,   1,     3,     3, 1, 9,    16, 55296,
                3072,  27648, 0,    0,   884736, 27648, 0,    0,     0,     0, 0, 0,    0,  0}),
      0.00098884, 1e-9);
  EXPECT_NEAR(
      price_of({552960, 36864, 30720, 6912, 147456, 122880, 27648, 263040, 230272, 0,   4,
                61440,  0,     30720, 0,    16,     16,     768,   8,      8,      768, 2,
                3,      3,     1,     9,    64,     552960, 30720, 276480, 0,      0,   8847360,
                276480, 0,     0,     0,    0,      0,      0,     0,      0}),
      0.00529788, 1e-9);
}

// Whatever field is lost or of another type, the file is refused or still works.
TEST(PredictorFile, NeverCrashesWhereAFieldIsLost) {
  auto good = small_predictor().to_json();
  for (auto& kind : good["kinds"]) {
    kind["known"].erase(kind["known"].begin() + 2, kind["known"].end());
    kind["known_ms"].erase(kind["known_ms"].begin() + 2, kind["known_ms"].end());
  }
  const auto flat = good.flatten();
  const auto kernels = test::kernels_of(test::make_profiles({.networks = 1})[0]);
  for (const auto& [pointer, value] : flat.items()) {
    for (const auto& replacement :
         {nlohmann::json(nullptr), nlohmann::json("x"), nlohmann::json(-1e300)}) {
      auto json = good;
      json[nlohmann::json::json_pointer(pointer)] = replacement;
      const auto read = kernel_predictor_from_json(core::JsonView(json, "p.json"));
      if (read) static_cast<void>((*read)->price(kernels));
    }
  }
}

TEST(PredictorFile, FitsItsDeviceAndPrecisionOnly) {
  const Identity identity{.device = "pi", .fingerprint = "abc", .precision = "fp32"};
  EXPECT_TRUE(check_fits(identity, {.device = "pi", .fingerprint = "abc", .precision = "fp32"}));
  EXPECT_TRUE(check_fits(identity, {}));
  EXPECT_EQ(check_fits(identity, {.device = "nano", .fingerprint = "xyz"}).error().message,
            "the predictor is for device 'pi', not for device 'nano'");
  EXPECT_EQ(check_fits(identity, {.precision = "int8"}).error().message,
            "the predictor is for precision 'fp32', not for precision 'int8'");
  EXPECT_THAT(check_fits(identity, {.device = "pi", .fingerprint = "xyz"}).error().message,
              HasSubstr("device 'pi' has changed since the predictor was trained"));
  EXPECT_TRUE(
      check_fits({.device = "paper"}, {.device = "pi", .fingerprint = "abc", .precision = "fp32"}));
}

TEST(Conformal, TakesTheScoreThatTheNextOneKeepsToNineTimesOfTen) {
  std::vector<double> scores;
  for (int i = 1; i <= 19; ++i) scores.push_back(i);
  EXPECT_EQ(conformal_score90(scores), 18);                      // ceil(0.9 x 20)
  EXPECT_EQ(conformal_score90({3, 1, 2}), 3);                    // too few to tell: the largest
  EXPECT_EQ(conformal_score90({5, 1, 2, 3, 4, 6, 7, 8, 9}), 9);  // ceil(0.9 x 10)
  EXPECT_EQ(conformal_score90({}), 0);
}

}  // namespace
}  // namespace fleetfit::predict
