#include <gmock/gmock.h>

#include "fleetfit/data/dataset.h"

namespace fleetfit::data {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Item two_colours() {
  return {.image = {.height = 1, .width = 2, .channels = 3, .pixels = {255, 0, 51, 102, 204, 0}},
          .label = 4};
}

Item grey_square() {
  return {.image = {.height = 2, .width = 2, .channels = 1, .pixels = {0, 100, 200, 40}},
          .label = 1};
}

TEST(MakeBatch, PutsChannelsWhereAskedFor) {
  const std::vector<Item> items{two_colours()};
  const auto first = make_batch(items, {}).value();
  EXPECT_THAT(first.shape, ElementsAre(1, 3, 1, 2));
  EXPECT_THAT(first.values, Pointwise(FloatNear(1e-6F), {1.0F, 0.4F, 0.0F, 0.8F, 0.2F, 0.0F}));
  EXPECT_THAT(first.labels, ElementsAre(4));
  const auto last = make_batch(items, {.order = PixelOrder::nhwc}).value();
  EXPECT_THAT(last.shape, ElementsAre(1, 1, 2, 3));
  EXPECT_THAT(last.values, Pointwise(FloatNear(1e-6F), {1.0F, 0.0F, 0.2F, 0.4F, 0.8F, 0.0F}));
}

TEST(MakeBatch, SubtractsMeansAndDividesByDeviations) {
  const std::vector<Item> items{two_colours()};
  const auto batch =
      make_batch(items,
                 {.order = PixelOrder::nhwc, .mean = {0.5F, 0, 0.2F}, .stddev = {0.5F, 2, 1}})
          .value();
  // (1 - 0.5) / 0.5, 0 / 2, 0.2 - 0.2, (0.4 - 0.5) / 0.5, 0.8 / 2, 0 - 0.2
  EXPECT_THAT(batch.values, Pointwise(FloatNear(1e-6F), {1.0F, 0.0F, 0.0F, -0.2F, 0.4F, -0.2F}));
  const auto raw = make_batch(items, {.order = PixelOrder::nhwc, .scale = 1}).value();
  EXPECT_THAT(raw.values, ElementsAre(255, 0, 51, 102, 204, 0));
}

TEST(MakeBatch, StretchesBetweenPixelCentres) {
  const std::vector<Item> items{grey_square()};
  const auto wide = make_batch(items, {.height = 2, .width = 4, .scale = 1}).value();
  // Centres at -0.25, 0.25, 0.75 and 1.25 of the two columns.
  EXPECT_THAT(wide.values, ElementsAre(0, 25, 75, 100, 200, 160, 80, 40));
  const auto point = make_batch(items, {.height = 1, .width = 1, .scale = 1}).value();
  EXPECT_THAT(point.values, ElementsAre(85));  // the mean of the four
}

TEST(MakeBatch, TurnsGreyIntoColoursAndBack) {
  const auto colours = make_batch(std::vector{grey_square()}, {.channels = 3, .scale = 1}).value();
  EXPECT_THAT(colours.shape, ElementsAre(1, 3, 2, 2));
  EXPECT_THAT(colours.values, ElementsAre(0, 100, 200, 40, 0, 100, 200, 40, 0, 100, 200, 40));
  const auto plain = make_batch(std::vector{two_colours()}, {.channels = 1, .scale = 1}).value();
  // 0.299 * 255 + 0.114 * 51, 0.299 * 102 + 0.587 * 204
  EXPECT_THAT(plain.values, Pointwise(FloatNear(1e-3F), {82.059F, 150.246F}));
}

TEST(MakeBatch, GivesClassesOfPixelsOfTheInputsSize) {
  auto item = grey_square();
  item.mask = {0, 1, 2, 3};
  const auto plain = make_batch(std::vector{item, item}, {}).value();
  EXPECT_THAT(plain.labels, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  const auto wide = make_batch(std::vector{item}, {.height = 2, .width = 4}).value();
  EXPECT_THAT(wide.labels, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_FALSE(make_batch(std::vector{item, grey_square()}, {}));
  item.mask.pop_back();
  EXPECT_FALSE(make_batch(std::vector{item}, {}));
}

TEST(MakeBatch, WantsToKnowTheSizeOfImagesThatDiffer) {
  const std::vector<Item> items{grey_square(), two_colours()};
  const auto open = make_batch(items, {});
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("say which size"));
  const auto batch = make_batch(items, {.height = 4, .width = 4, .channels = 3}).value();
  EXPECT_EQ(batch.values.size(), 2U * 3 * 4 * 4);
  EXPECT_THAT(batch.labels, ElementsAre(1, 4));
}

TEST(MakeBatch, RefusesOptionsThatMakeNoSense) {
  const std::vector<Item> items{two_colours()};
  for (const auto& options : std::vector<Preprocessing>{{.height = -1},
                                                        {.width = 1 << 20},
                                                        {.channels = 2},
                                                        {.mean = {1}},
                                                        {.stddev = {1, 0, 1}}}) {
    const auto batch = make_batch(items, options);
    ASSERT_FALSE(batch);
    EXPECT_EQ(batch.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(batch.error().message, HasSubstr("preprocessing: "));
  }
  EXPECT_FALSE(make_batch(std::span<const Item>{}, {}));
}

}  // namespace
}  // namespace fleetfit::data
