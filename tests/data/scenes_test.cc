#include "fleetfit/data/scenes.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace fleetfit::data {
namespace {

using ::testing::HasSubstr;

class Listed : public Dataset {
 public:
  Listed(std::vector<Item> items, std::vector<std::string> classes)
      : items_(std::move(items)), classes_(std::move(classes)) {}

  std::size_t size() const override { return items_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<Item> item(std::size_t index) const override { return items_[index]; }

 private:
  std::vector<Item> items_;
  std::vector<std::string> classes_;
};

Image square(std::int64_t size, std::uint8_t value) {
  return {.height = size,
          .width = size,
          .channels = 1,
          .pixels = std::vector<std::uint8_t>(static_cast<std::size_t>(size * size), value)};
}

/// 6 x 6 black pixels, of which a block of 2 rows and 4 columns is bright.
Item bar(std::int64_t label) {
  auto image = square(6, 0);
  for (const auto y : {2, 3})
    for (const auto x : {1, 2, 3, 4}) image.pixels[static_cast<std::size_t>(6 * y + x)] = 200;
  return {.image = image, .label = label};
}

std::shared_ptr<const Dataset> bars() {
  return std::make_shared<Listed>(std::vector{bar(0), bar(1), bar(2)},
                                  std::vector<std::string>{"a", "b", "c"});
}

SceneOptions unscaled(std::int64_t size, int objects) {
  return {.size = size,
          .min_objects = objects,
          .max_objects = objects,
          .min_scale = 1,
          .max_scale = 1,
          .count = 20};
}

std::size_t pixels_of(const Scene& scene, std::int64_t label) {
  return static_cast<std::size_t>(
      std::count(scene.mask.begin(), scene.mask.end(), static_cast<std::uint8_t>(label + 1)));
}

TEST(Scenes, MarkJustTheObjectsOwnPixels) {
  const auto scenes = Scenes::create(bars(), unscaled(16, 1)).value();
  ASSERT_EQ(scenes.size(), 20U);
  for (std::size_t i = 0; i < scenes.size(); ++i) {
    const auto scene = scenes.scene(i).value();
    ASSERT_EQ(scene.objects.size(), 1U);
    const auto& object = scene.objects[0];
    EXPECT_EQ(object.right - object.left, 4);
    EXPECT_EQ(object.bottom - object.top, 2);
    for (std::int64_t y = 0; y < 16; ++y) {
      for (std::int64_t x = 0; x < 16; ++x) {
        const bool inside =
            y >= object.top && y < object.bottom && x >= object.left && x < object.right;
        const auto place = static_cast<std::size_t>(16 * y + x);
        EXPECT_EQ(scene.mask[place], inside ? object.label + 1 : 0);
        EXPECT_EQ(scene.image.pixels[place] == 200, inside);
      }
    }
  }
}

TEST(Scenes, TakeImagesThatAreNotOnBlackAsAWhole) {
  const auto data = std::make_shared<Listed>(std::vector{Item{.image = square(4, 100), .label = 0}},
                                             std::vector<std::string>{"a"});
  const auto scene = Scenes::create(data, unscaled(8, 1)).value().scene(0).value();
  EXPECT_EQ(pixels_of(scene, 0), 16U);
}

TEST(Scenes, HideNoMoreOfAnObjectThanAllowed) {
  for (const double share : {0.0, 0.25}) {
    auto options = unscaled(12, 4);
    options.max_overlap = share;
    const auto scenes = Scenes::create(bars(), options).value();
    std::size_t least = 8;
    for (std::size_t i = 0; i < scenes.size(); ++i) {
      const auto scene = scenes.scene(i).value();
      std::array<std::size_t, 3> objects{};
      for (const auto& object : scene.objects) ++objects[static_cast<std::size_t>(object.label)];
      for (std::size_t label = 0; label < 3; ++label) {
        // Each has 8 pixels, of which a quarter is 2.
        const auto seen = pixels_of(scene, static_cast<std::int64_t>(label));
        EXPECT_GE(seen, objects[label] * (share > 0 ? 6 : 8));
        if (objects[label] == 1) least = std::min(least, seen);
      }
    }
    EXPECT_EQ(least < 8, share > 0) << "overlaps do happen where they may";
  }
}

TEST(Scenes, HaveAsManyObjectsAsAskedForWhereThereIsRoom) {
  auto options = unscaled(64, 1);
  options.max_objects = 3;
  options.count = 60;
  const auto scenes = Scenes::create(bars(), options).value();
  std::array<int, 4> seen{};
  for (std::size_t i = 0; i < scenes.size(); ++i) ++seen.at(scenes.scene(i).value().objects.size());
  EXPECT_EQ(seen[0], 0);
  for (const auto count : {1, 2, 3}) EXPECT_GT(seen.at(static_cast<std::size_t>(count)), 8);
}

TEST(Scenes, StretchObjectsAndShrinkWhatDoesNotFit) {
  auto options = unscaled(16, 1);
  options.min_scale = options.max_scale = 2;
  const auto twice = Scenes::create(bars(), options).value().scene(0).value();
  // Bilinear edges of a block of 8 x 4: three quarters and a quarter of 200 beside it are not
  // black.
  EXPECT_EQ(twice.objects[0].right - twice.objects[0].left, 10);
  EXPECT_EQ(twice.objects[0].bottom - twice.objects[0].top, 6);
  options.max_scale = 100;
  options.min_scale = 100;
  const auto filled = Scenes::create(bars(), options).value().scene(0).value();
  EXPECT_GE(filled.objects[0].left, 0);
  EXPECT_LE(filled.objects[0].right, 16);
}

TEST(Scenes, AreTheSameForTheSameSeedAlone) {
  const auto data = bars();
  auto options = unscaled(32, 3);
  const auto first = Scenes::create(data, options).value().scene(7).value();
  const auto again = Scenes::create(data, options).value().scene(7).value();
  EXPECT_EQ(first.image, again.image);
  EXPECT_EQ(first.objects, again.objects);
  EXPECT_EQ(first.mask, again.mask);
  options.seed = 2;
  EXPECT_NE(first.image, Scenes::create(data, options).value().scene(7).value().image);
}

TEST(Scenes, AreColouredIfAnImageIs) {
  auto colours = square(2, 0);
  colours.channels = 3;
  colours.pixels.assign(12, 250);
  const auto data = std::make_shared<Listed>(std::vector{Item{.image = colours, .label = 0}},
                                             std::vector<std::string>{"a"});
  const auto scene = Scenes::create(data, unscaled(8, 1)).value().scene(0).value();
  EXPECT_EQ(scene.image.channels, 3);
  EXPECT_EQ(scene.image.pixels.size(), 8U * 8 * 3);
  EXPECT_EQ(scene.mask.size(), 64U);
}

TEST(Scenes, NameTheOptionThatMakesNoSense) {
  const auto refused = [](const SceneOptions& options) {
    const auto scenes = Scenes::create(bars(), options);
    return scenes ? std::string("accepted") : scenes.error().message;
  };
  EXPECT_THAT(refused({.size = 0}), HasSubstr("size of 0"));
  EXPECT_THAT(refused({.min_objects = 5, .max_objects = 2}), HasSubstr("5 to 2 objects"));
  EXPECT_THAT(refused({.min_scale = 2, .max_scale = 1}), HasSubstr("scales of 2 to 1"));
  EXPECT_THAT(refused({.max_overlap = 1.5}), HasSubstr("overlap of 1.5"));
  const auto none = std::make_shared<Listed>(std::vector<Item>{}, std::vector<std::string>{});
  EXPECT_THAT(Scenes::create(none, {}).error().message, HasSubstr("no images"));
}

TEST(Scenes, AreImagesWithAClassForEachPixel) {
  const auto scenes = Scenes::create(bars(), unscaled(16, 2)).value();
  const auto data = as_dataset(scenes);
  EXPECT_EQ(data->classes(), (std::vector<std::string>{"background", "a", "b", "c"}));
  EXPECT_EQ(data->size(), scenes.size());
  const auto scene = scenes.scene(3).value();
  EXPECT_EQ(data->item(3).value(), (Item{.image = scene.image, .mask = scene.mask}));
}

TEST(OpenScenes, WantsAPrefixAndADataSet) {
  EXPECT_TRUE(is_scenes_spec("scenes:fashion-mnist"));
  EXPECT_FALSE(is_scenes_spec("fashion-mnist"));
  EXPECT_THAT(open_scenes("fashion-mnist", Split::test).error().message, HasSubstr("scenes:"));
  EXPECT_THAT(open_scenes("scenes:idx:/nowhere", Split::test).error().message,
              HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace fleetfit::data
