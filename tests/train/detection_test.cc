#include "train/quality.h"

#include <gtest/gtest.h>

namespace fleetfit::train {
namespace {

constexpr Box kUnit{.left = 0, .top = 0, .right = 10, .bottom = 10};

Box moved(double x) { return {.left = x, .top = 0, .right = x + 10, .bottom = 10}; }

TEST(Detection, OverlapIsCommonAreaOverWhole) {
  EXPECT_DOUBLE_EQ(overlap(kUnit, kUnit), 1);
  EXPECT_DOUBLE_EQ(overlap(kUnit, moved(5)), 50.0 / 150);
  EXPECT_DOUBLE_EQ(overlap(kUnit, moved(10)), 0);
  EXPECT_DOUBLE_EQ(overlap(Box{}, Box{}), 0);
}

TEST(Detection, KeepsTheSurestOfDoublesOfOneLabel) {
  const auto kept = suppress_doubles({{.box = kUnit, .label = 1, .confidence = 0.5},
                                      {.box = moved(1), .label = 1, .confidence = 0.9},
                                      {.box = kUnit, .label = 2, .confidence = 0.3},
                                      {.box = moved(8), .label = 1, .confidence = 0.4}},
                                     0.5);
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[0].confidence, 0.9);
  EXPECT_EQ(kept[1].confidence, 0.4);
  EXPECT_EQ(kept[2].label, 2);
}

TEST(Detection, PrecisionIsOneIfAllIsFound) {
  const std::vector<Judged> images{
      {.found = {{.box = kUnit, .label = 0, .confidence = 0.9},
                 {.box = moved(50), .label = 1, .confidence = 0.2}},
       .there = {{.box = kUnit, .label = 0}, {.box = moved(50), .label = 1}}}};
  EXPECT_DOUBLE_EQ(mean_average_precision(images, 10, 0.5), 1);
}

TEST(Detection, PrecisionIsWorkedOutByHand) {
  // Surest first: right, wrong, right; one of three things is never found.
  // Recall 1/3 at precision 1, then 2/3 at 2/3: 1/3 + 1/3 * 2/3 = 5/9.
  const std::vector<Judged> images{
      {.found = {{.box = kUnit, .label = 0, .confidence = 0.9},
                 {.box = moved(100), .label = 0, .confidence = 0.8},
                 {.box = moved(50), .label = 0, .confidence = 0.7}},
       .there = {{.box = kUnit, .label = 0}, {.box = moved(50), .label = 0}}},
      {.found = {}, .there = {{.box = kUnit, .label = 0}}}};
  EXPECT_NEAR(mean_average_precision(images, 1, 0.5), 5.0 / 9, 1e-12);
}

TEST(Detection, AThingIsFoundOnceAndOnlyInItsOwnImage) {
  const std::vector<Judged> images{
      {.found = {{.box = kUnit, .label = 0, .confidence = 0.9},
                 {.box = kUnit, .label = 0, .confidence = 0.8}},
       .there = {{.box = kUnit, .label = 0}}},
      {.found = {{.box = kUnit, .label = 0, .confidence = 0.95}}, .there = {}}};
  // The surest is in the wrong image: precision 1/2 at recall 1.
  EXPECT_NEAR(mean_average_precision(images, 1, 0.5), 0.5, 1e-12);
}

TEST(Detection, ClassesThatAreNowhereDoNotCount) {
  const std::vector<Judged> images{{.found = {{.box = kUnit, .label = 3, .confidence = 0.9}},
                                    .there = {{.box = kUnit, .label = 0}}}};
  EXPECT_EQ(mean_average_precision(images, 10, 0.5), 0);
  EXPECT_EQ(mean_average_precision({}, 10, 0.5), 0);
}

}  // namespace
}  // namespace fleetfit::train
