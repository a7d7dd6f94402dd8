#include "train/torch/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/train/memory_dataset.h"
#include "train/torch/parameters.h"

namespace fleetfit::train {
namespace {

using testing::FloatNear;
using testing::Pointwise;

class TorchImagesTest : public testing::Test {
 protected:
  TorchImages load(const data::Dataset& data, const TorchImageOptions& options = {}) {
    return TorchImages::load(data, options, pool_).value();
  }

  core::ThreadPool pool_{2};
};

TEST_F(TorchImagesTest, GivesWhatTheOtherProgramsFeedToNetworks) {
  const std::vector<std::int64_t> places{3, 0, 2};
  const std::vector<std::size_t> indices{3, 0, 2};
  for (const std::int64_t own : {1, 3}) {
    const auto data = noisy_images(4, 6, 5, own);
    for (const std::int64_t channels : {1, 3}) {
      for (const std::int64_t size : {6, 9, 4}) {
        const auto images =
            load(data, {.form = {.channels = channels, .height = size, .width = size}});
        const auto batch = images.batch(places).value();
        const auto expected =
            data::make_batch(data, indices, {.height = size, .width = size, .channels = channels})
                .value();
        EXPECT_EQ(batch.images.sizes().vec(), expected.shape);
        EXPECT_THAT(numbers_of(batch.images.reshape({-1})),
                    Pointwise(FloatNear(1e-5F), expected.values));
      }
    }
  }
}

TEST_F(TorchImagesTest, ReadsOnDemandWhatDoesNotFit) {
  const auto data = noisy_images(5, 4, 4, 3);
  const std::vector<std::int64_t> places{4, 1};
  const auto kept = load(data).batch(places).value();
  const auto read = load(data, {.max_bytes = 1}).batch(places).value();
  EXPECT_TRUE(kept.images.equal(read.images));
  EXPECT_TRUE(kept.labels.equal(read.labels));
}

TEST_F(TorchImagesTest, ClassesOfPixelsMoveWithThem) {
  auto items = noisy_images(6, 5, 5, 1).items();
  for (auto& item : items) item.mask = item.image.pixels;  // so that they can be told apart
  const MemoryDataset data(items, {"a"});
  const auto images = load(data);
  const std::vector<std::int64_t> places{5, 0, 3};
  const auto plain = images.batch(places).value();
  EXPECT_EQ(plain.labels.sizes().vec(), (std::vector<std::int64_t>{3, 5, 5}));
  const auto moved = images.batch(places, {.shift = 2, .flip = true}, core::Random(3)).value();
  for (const auto& batch : {plain, moved}) {
    EXPECT_THAT(numbers_of(batch.images.reshape({-1})),
                Pointwise(FloatNear(1e-6F),
                          numbers_of(batch.labels.reshape({-1}).to(at::kFloat).div(255.0))));
  }
  const auto read = load(data, {.max_bytes = 1}).batch(places).value();
  EXPECT_TRUE(read.labels.equal(plain.labels));
}

TEST_F(TorchImagesTest, ReadsAheadWithoutChangingAnything) {
  const auto data = noisy_images(12, 4, 4, 1);
  const auto images = load(data, {.max_bytes = 1});
  const EpochOptions options{.batch = 3, .augmentation = {.shift = 1}};
  ShuffledBatches batches(images, options, core::Random(7));
  const ShuffledBatches expected(images, options, core::Random(7));
  for (const std::int64_t number : {0, 1, 2, 3, 1, 2})
    EXPECT_TRUE(batches.next(number)->images.equal(expected.batch(number)->images)) << number;
}

TEST_F(TorchImagesTest, ChoosesTheSameFewEachTime) {
  const auto data = noisy_images(50, 2, 2, 1);
  std::set<std::int64_t> chosen;
  for (int again = 0; again < 2; ++again) {
    const auto images = load(data, {.limit = 10});
    ASSERT_EQ(images.size(), 10);
    const OrderedBatches batches(images, 4);
    ASSERT_EQ(batches.size(), 3);
    for (std::int64_t i = 0; i < 3; ++i) {
      const auto labels = batches.batch(i).value().labels;
      for (std::int64_t k = 0; k < labels.size(0); ++k)
        chosen.insert(labels[k].item<std::int64_t>());
    }
  }
  EXPECT_EQ(chosen.size(), 10u);
}

TEST_F(TorchImagesTest, ShufflesEachImageIntoOneBatchAndCanBeginAnywhere) {
  const auto data = noisy_images(20, 3, 3, 1);
  const auto images = load(data);
  const EpochOptions options{.batch = 5, .augmentation = {.shift = 1, .flip = true}};
  const ShuffledBatches batches(images, options, core::Random(7));
  ASSERT_EQ(batches.size(), 4);
  std::vector<std::int64_t> seen;
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto batch = batches.batch(i).value();
    for (std::int64_t k = 0; k < 5; ++k) seen.push_back(batch.labels[k].item<std::int64_t>());
  }
  EXPECT_FALSE(std::ranges::is_sorted(seen));
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 20u);

  const ShuffledBatches again(images, options, core::Random(7));
  EXPECT_TRUE(again.batch(2).value().images.equal(batches.batch(2).value().images));
  const ShuffledBatches other(images, options, core::Random(8));
  EXPECT_FALSE(other.batch(2).value().labels.equal(batches.batch(2).value().labels));
}

TEST_F(TorchImagesTest, TakesAllForOneBatchOfFewImages) {
  const auto data = noisy_images(3, 2, 2, 1);
  const auto images = load(data);
  const ShuffledBatches batches(images, {.batch = 8}, core::Random(1));
  ASSERT_EQ(batches.size(), 1);
  EXPECT_EQ(batches.batch(0).value().labels.size(0), 3);
}

// Outside there is nothing.
float pixel(const data::Image& image, std::int64_t y, std::int64_t x) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) return 0;
  return static_cast<float>(image.pixels[static_cast<std::size_t>(y * image.width + x)]) / 255;
}

bool is_moved(const at::Tensor& got, const data::Image& image, std::int64_t down,
              std::int64_t right, bool flipped) {
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      const auto column = flipped ? image.width - 1 - x : x;
      const auto expected = pixel(image, y + down, column + right);
      if (std::abs(got[0][y][x].item<float>() - expected) > 1e-6F) return false;
    }
  }
  return true;
}

TEST_F(TorchImagesTest, MovesAndMirrorsImages) {
  const auto data = noisy_images(40, 4, 4, 1);
  const auto images = load(data);
  const ShuffledBatches batches(images, {.batch = 40, .augmentation = {.shift = 1, .flip = true}},
                                core::Random(3));
  const auto batch = batches.batch(0).value();
  std::set<int> kinds;
  for (std::int64_t i = 0; i < 40; ++i) {
    const auto& image =
        data.items()[static_cast<std::size_t>(batch.labels[i].item<std::int64_t>())].image;
    int found = 0;
    for (int kind = 0; kind < 18; ++kind) {
      if (!is_moved(batch.images[i], image, kind / 6 - 1, kind / 2 % 3 - 1, kind % 2 == 1))
        continue;
      ++found;
      kinds.insert(kind);
    }
    EXPECT_EQ(found, 1) << "image " << i;
  }
  EXPECT_GT(kinds.size(), 9u);  // all eighteen are equally likely
}

}  // namespace
}  // namespace fleetfit::train
