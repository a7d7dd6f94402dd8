#include "fleetfit/predict/design_predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace fleetfit::predict {
namespace {

using ::testing::HasSubstr;

const space::Space& cells() { return **space::find_space("nasbench201"); }

/// Designs with a law that every live operator adds its own time to: dead ones cost nothing.
struct Timed {
  space::Population designs;
  std::vector<double> ms;
};

Timed timed_designs(std::size_t count) {
  Timed timed{.designs = space::sample_designs(cells(), {.seed = 3, .count = count}).value()};
  const auto live = cells().find_encoding("live").value();
  const auto columns = cells().encodings()[live].features.size();
  std::vector<double> rows(count * columns);
  cells().encode(timed.designs, live, rows);
  for (std::size_t i = 0; i < count; ++i) {
    double ms = 5;
    for (std::size_t c = 0; c < columns; ++c)
      ms += rows[i * columns + c] * (1 + static_cast<double>(c * 7 % 5));
    timed.ms.push_back(ms);
  }
  return timed;
}

Result<std::unique_ptr<const DesignPredictor>> train(const Timed& timed,
                                                     const DesignTrainOptions& options) {
  core::ThreadPool pool(2);
  return train_design_predictor(cells(), timed.designs, timed.ms, options, pool);
}

TEST(DesignPredictor, ChoosesTheEncodingThatTheLawIsWrittenIn) {
  const auto predictor =
      train(timed_designs(300), {.method = DesignMethod::linear, .identity = {.device = "phone"}});
  ASSERT_TRUE(predictor) << predictor.error().message;
  EXPECT_EQ((*predictor)->reads(), "live");
  EXPECT_EQ((*predictor)->identity().networks, 300);
  EXPECT_EQ((*predictor)->identity().method, "linear");
  EXPECT_LT((*predictor)->mape(), 0.1);

  const auto others = timed_designs(400);
  std::vector<double> predicted(100);
  ASSERT_TRUE((*predictor)->evaluate(others.designs.batch().part(300, 100), predicted));
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_NEAR(predicted[i], others.ms[300 + i], 0.01 * others.ms[300 + i]);
}

TEST(DesignPredictor, IsReadBackAsItWasWritten) {
  const auto timed = timed_designs(60);
  const auto predictor = train(timed, {.encoding = "counts"});
  ASSERT_TRUE(predictor) << predictor.error().message;
  const auto json = (*predictor)->to_json();
  const auto again = design_predictor_from_json(core::JsonView(json, "p.json"));
  ASSERT_TRUE(again) << again.error().message;
  std::vector<double> first(60);
  std::vector<double> second(60);
  ASSERT_TRUE((*predictor)->evaluate(timed.designs, first));
  ASSERT_TRUE((*again)->evaluate(timed.designs, second));
  EXPECT_EQ(first, second);
  EXPECT_EQ((*again)->reads(), "counts");
  EXPECT_EQ((*again)->interval90(10).high, (*predictor)->interval90(10).high);
}

TEST(DesignPredictor, RefusesWhatItCannotBe) {
  auto timed = timed_designs(10);
  EXPECT_THAT(train(timed, {.encoding = "other"}).error().message, HasSubstr("other"));
  EXPECT_THAT(train(timed, {.method = DesignMethod::graph}).error().message,
              HasSubstr("10 designs are too few for a graph network"));
  timed.ms[3] = 0;
  EXPECT_EQ(train(timed, {}).error().message,
            "design " + cells().format(timed.designs.batch()[3]) + ": 0 is no time");
  timed.ms.resize(4);
  timed.designs.resize(4);
  timed.ms[3] = 1;
  EXPECT_THAT(train(timed, {}).error().message, HasSubstr("4 networks are too few"));
}

TEST(DesignPredictor, RefusesAFileOfAnotherSpaceByName) {
  auto json = (*train(timed_designs(20), {.encoding = "live"}))->to_json();
  const auto error = [&] {
    return design_predictor_from_json(core::JsonView(json, "p.json")).error().message;
  };
  json["space_version"] = 9;
  EXPECT_EQ(error(), "p.json: space_version: is 9, the space nasbench201 here has version 1");
  json["space_version"] = 1;
  json["space"] = "elsewhere";
  EXPECT_THAT(error(), HasSubstr("p.json: space: there is no space 'elsewhere'"));
  json["space"] = "icpe";
  EXPECT_THAT(error(), HasSubstr("p.json: features: the encoding live has"));
  json["type"] = "roofline";
  EXPECT_EQ(error(), "p.json: type: 'roofline' is no predictor of designs of a space");
}

}  // namespace
}  // namespace fleetfit::predict
