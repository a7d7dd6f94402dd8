#include "fleetfit/data/dataset.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <cmath>
#include <set>

#include "tests/core/temporary_folder.h"
#include "tests/data/image_files.h"

namespace fleetfit::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Big-endian.
std::string extent(std::uint32_t value) {
  auto bytes = number(value, 4);
  return {bytes.rbegin(), bytes.rend()};
}

std::string idx_images(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  std::string file("\0\0\10\3", 4);
  file += extent(count) + extent(height) + extent(width);
  for (std::uint32_t i = 0; i < count * height * width; ++i) file += static_cast<char>(i);
  return file;
}

std::string idx_labels(const std::string& labels) {
  return std::string("\0\0\10\1", 4) + extent(static_cast<std::uint32_t>(labels.size())) + labels;
}

std::string gzip_file(const std::string& content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string input = content;
  std::string output(content.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(output.data());
  stream.avail_out = static_cast<uInt>(output.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  output.resize(stream.total_out);
  deflateEnd(&stream);
  return output;
}

class IdxData : public ::testing::Test {
 protected:
  IdxData() {
    folder_.file("train-images-idx3-ubyte", idx_images(10, 2, 3));
    folder_.file("train-labels-idx1-ubyte.gz",
                 gzip_file(idx_labels(std::string("\0\1\2\0\1\2\0\1\2\0", 10))));
    folder_.file("t10k-images-idx3-ubyte.gz", gzip_file(idx_images(2, 2, 3)));
    folder_.file("t10k-labels-idx1-ubyte", idx_labels(std::string("\2\1", 2)));
  }

  std::string spec() const { return "idx:" + folder_.path().string(); }
  std::string error_with(const std::string& name, const std::string& content) {
    folder_.file(name, content);
    const auto data = open_dataset(spec(), Split::train);
    return data ? "" : data.error().message;
  }

  core::TemporaryFolder folder_;
};

TEST_F(IdxData, IsReadCompressedOrNot) {
  const auto test = open_dataset(spec(), Split::test).value();
  ASSERT_EQ(test->size(), 2U);
  EXPECT_THAT(test->classes(), ElementsAre("0", "1", "2"));
  const auto item = test->item(1).value();
  EXPECT_EQ(item.label, 1);
  EXPECT_EQ(item.image, (Image{2, 3, 1, {6, 7, 8, 9, 10, 11}}));
  EXPECT_EQ(open_dataset(spec(), Split::all).value()->size(), 12U);
}

std::set<int> first_pixels(const Dataset& data) {
  std::set<int> pixels;
  for (std::size_t i = 0; i < data.size(); ++i)
    pixels.insert(data.item(i).value().image.pixels.front());
  return pixels;
}

TEST_F(IdxData, SplitsTrainingDataByTheSeed) {
  const SplitOptions options{.validation_share = 0.3, .seed = 5};
  const auto train = open_dataset(spec(), Split::train, options).value();
  const auto validation = open_dataset(spec(), Split::validation, options).value();
  EXPECT_EQ(train->size(), 7U);
  EXPECT_EQ(validation->size(), 3U);
  // Image i begins with 6 i: together they are all ten.
  auto all = first_pixels(*train);
  all.merge(first_pixels(*validation));
  EXPECT_EQ(all.size(), 10U);
  const auto again = open_dataset(spec(), Split::validation, options).value();
  EXPECT_EQ(first_pixels(*again), first_pixels(*validation));
  std::set<std::set<int>> choices;
  for (std::uint64_t seed = 1; seed < 6; ++seed)
    choices.insert(first_pixels(
        *open_dataset(spec(), Split::validation, {.validation_share = 0.3, .seed = seed}).value()));
  EXPECT_GT(choices.size(), 1U);
}

TEST_F(IdxData, NamesWhatIsWrongWithItsFiles) {
  const std::string images = "train-images-idx3-ubyte";
  EXPECT_THAT(error_with(images, "PK12"), HasSubstr(images + ": no IDX file"));
  EXPECT_THAT(error_with(images, std::string("\0\0\15\3", 4)), HasSubstr("type 13"));
  EXPECT_THAT(error_with(images, std::string("\0\0\10\3\0\0", 6)), HasSubstr("cut short"));
  EXPECT_THAT(error_with(images, idx_images(10, 2, 3).substr(0, 40)), HasSubstr("24 bytes of 60"));
  const auto huge = extent(0xffffffffU);
  EXPECT_THAT(error_with(images, std::string("\0\0\10\3", 4) + huge + huge + huge),
              HasSubstr("huge"));
  EXPECT_THAT(error_with(images, std::string("\0\0\10\3", 4) + extent(0) + huge + huge),
              HasSubstr("0 images have 10 labels"));
  EXPECT_THAT(error_with(images, idx_images(9, 2, 3)), HasSubstr("9 images have 10 labels"));
  EXPECT_THAT(error_with(images, idx_labels("abc")), HasSubstr("1 dimensions"));
  folder_.file(images, idx_images(10, 2, 3));
  EXPECT_THAT(error_with("train-labels-idx1-ubyte.gz", "no gzip"),
              HasSubstr("gzip data are broken"));
  const auto packed = gzip_file(idx_labels(std::string(10, '\1')));
  EXPECT_THAT(error_with("train-labels-idx1-ubyte.gz", packed.substr(0, packed.size() / 2)),
              HasSubstr("gzip data are broken"));
}

TEST_F(IdxData, MissingFilesAreNamed) {
  std::filesystem::remove(folder_.path() / "t10k-labels-idx1-ubyte");
  const auto data = open_dataset(spec(), Split::test);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, ErrorCode::not_found);
  EXPECT_THAT(data.error().message, HasSubstr("t10k-labels-idx1-ubyte"));
}

TEST(FashionMnist, IsTheRealOne) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "the Debian package dataset-fashion-mnist is not installed";
  const auto test = open_dataset("fashion-mnist", Split::test).value();
  EXPECT_EQ(test->size(), 10'000U);
  EXPECT_EQ(test->classes().size(), 10U);
  EXPECT_EQ(test->classes()[static_cast<std::size_t>(test->item(0).value().label)], "Ankle boot");
  std::vector<int> counts(10);
  for (std::size_t i = 0; i < test->size(); ++i)
    ++counts[static_cast<std::size_t>(test->item(i).value().label)];
  EXPECT_THAT(counts, ::testing::Each(1000));

  const auto train = open_dataset("fashion-mnist", Split::train, {.validation_share = 0}).value();
  ASSERT_EQ(train->size(), 60'000U);
  // Mean and standard deviation of its pixels, as widely published: 0.2860 and 0.3530.
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < train->size(); ++i) {
    const auto item = train->item(i).value();
    for (const auto pixel : item.image.pixels) {
      sum += pixel / 255.0;
      squares += pixel / 255.0 * (pixel / 255.0);
    }
  }
  const double count = 60'000.0 * 28 * 28;
  EXPECT_NEAR(sum / count, 0.2860, 5e-5);
  EXPECT_NEAR(std::sqrt(squares / count - std::pow(sum / count, 2)), 0.3530, 5e-5);
}

std::string cifar_record(char label, char red, char green, char blue) {
  return std::string(1, label) + std::string(1024, red) + std::string(1024, green) +
         std::string(1024, blue);
}

TEST(Cifar10, ReadsTheBinaryVersion) {
  const core::TemporaryFolder folder;
  for (int i = 1; i <= 5; ++i)
    folder.file("data_batch_" + std::to_string(i) + ".bin", cifar_record('\3', '\1', '\2', '\3'));
  folder.file("test_batch.bin",
              cifar_record('\0', '\1', '\2', '\3') + cifar_record('\11', '\4', '\5', '\6'));
  const auto spec = "cifar10:" + folder.path().string();
  const auto test = open_dataset(spec, Split::test).value();
  ASSERT_EQ(test->size(), 2U);
  const auto item = test->item(1).value();
  EXPECT_EQ(test->classes()[static_cast<std::size_t>(item.label)], "truck");
  EXPECT_EQ(item.image.height, 32);
  EXPECT_EQ(item.image.channels, 3);
  EXPECT_THAT(std::vector(item.image.pixels.begin(), item.image.pixels.begin() + 4),
              ElementsAre(4, 5, 6, 4));
  EXPECT_EQ(open_dataset(spec, Split::all).value()->size(), 7U);

  folder.file("test_batch.bin", cifar_record('\12', '\1', '\2', '\3'));
  EXPECT_THAT(open_dataset(spec, Split::test).error().message, HasSubstr("label 10 of 10 classes"));
  folder.file("test_batch.bin", "short");
  EXPECT_THAT(open_dataset(spec, Split::test).error().message,
              HasSubstr("test_batch.bin: 5 bytes"));
}

TEST(Cifar10, ReadsTheNpmPackage) {
  const core::TemporaryFolder folder;
  Image rows{.height = 2, .width = 1024, .channels = 3};
  for (int i = 0; i < 2 * 1024 * 3; ++i) rows.pixels.push_back(static_cast<std::uint8_t>(i % 251));
  folder.file("test_batch.png", png_file(rows));
  folder.file("test_lables.json", "[3, 8]");
  const auto spec = "cifar10:" + folder.path().string();
  const auto test = open_dataset(spec, Split::test).value();
  ASSERT_EQ(test->size(), 2U);
  EXPECT_EQ(test->item(1).value().label, 8);
  EXPECT_EQ(test->item(1).value().image.pixels[0], 3072 % 251);
  folder.file("test_lables.json", "[3]");
  EXPECT_THAT(open_dataset(spec, Split::test).error().message, HasSubstr("2 images have 1 labels"));
  folder.file("test_lables.json", "[3, 10]");
  EXPECT_THAT(open_dataset(spec, Split::test).error().message, HasSubstr("test_lables.json: [1]"));
}

class Folders : public ::testing::Test {
 protected:
  void add(const std::string& name, std::uint8_t shade) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    folder_.file(name, png_file({.height = 1, .width = 1, .channels = 1, .pixels = {shade}}));
  }
  std::string spec() const { return "images:" + folder_.path().string(); }

  core::TemporaryFolder folder_;
};

TEST_F(Folders, GiveOneClassEach) {
  add("dog/b.png", 3);
  add("dog/a.PNG", 2);
  add("cat/z.png", 1);
  add("cat/.hidden.png", 9);
  folder_.file("cat/notes.txt", "no image");
  const auto data = open_dataset(spec(), Split::all).value();
  EXPECT_THAT(data->classes(), ElementsAre("cat", "dog"));
  ASSERT_EQ(data->size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto item = data->item(i).value();
    EXPECT_EQ(item.image.pixels[0], i + 1);
    EXPECT_EQ(item.label, i == 0 ? 0 : 1);
  }
}

TEST_F(Folders, AreSplitInThreePartsThatDoNotOverlap) {
  for (int i = 0; i < 20; ++i) add("c/" + std::to_string(i) + ".png", static_cast<std::uint8_t>(i));
  const SplitOptions options{.validation_share = 0.25, .test_share = 0.2};
  std::set<int> all;
  std::vector<std::size_t> sizes;
  for (const auto split : {Split::train, Split::validation, Split::test}) {
    const auto data = open_dataset(spec(), split, options).value();
    sizes.push_back(data->size());
    all.merge(first_pixels(*data));
  }
  EXPECT_THAT(sizes, ElementsAre(12, 4, 4));
  EXPECT_EQ(all.size(), 20U);
}

TEST_F(Folders, MayNameTheirTestImages) {
  add("train/a/1.png", 1);
  add("train/b/2.png", 2);
  add("test/b/3.png", 3);
  const auto test = open_dataset(spec(), Split::test).value();
  ASSERT_EQ(test->size(), 1U);
  EXPECT_EQ(test->item(0).value().label, 1);
  EXPECT_THAT(test->classes(), ElementsAre("a", "b"));
  add("test/unheard/4.png", 4);
  EXPECT_THAT(open_dataset(spec(), Split::test).error().message, HasSubstr("'unheard'"));
}

TEST_F(Folders, NameABrokenFileWhenItIsRead) {
  add("a/1.png", 1);
  folder_.file("a/2.png", "no image");
  const auto data = open_dataset(spec(), Split::all).value();
  EXPECT_TRUE(data->item(0));
  EXPECT_THAT(data->item(1).error().message, HasSubstr("a/2.png"));
  const std::vector<std::size_t> both{0, 1};
  EXPECT_THAT(make_batch(*data, both, {}).error().message, HasSubstr("a/2.png"));
  const std::vector<std::size_t> beyond{7};
  EXPECT_THAT(make_batch(*data, beyond, {}).error().message, HasSubstr("no image 7 of 2"));
}

TEST_F(Folders, WithoutImagesAreRefused) {
  EXPECT_THAT(open_dataset(spec(), Split::all).error().message, HasSubstr("no PNG, JPEG or BMP"));
  const auto missing = open_dataset(spec() + "/nowhere", Split::all);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  add("a/1.png", 1);
  EXPECT_THAT(open_dataset(spec(), Split::test).error().message, HasSubstr("no images for 'test'"));
}

TEST(OpenDataset, SaysWhichSpecsThereAre) {
  for (const auto* spec : {"random", "idx", "idx:", "mnist:/tmp", ""}) {
    const auto data = open_dataset(spec, Split::test);
    ASSERT_FALSE(data);
    EXPECT_EQ(data.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(data.error().message, HasSubstr("cifar10:DIR"));
  }
  EXPECT_FALSE(open_dataset("fashion-mnist", Split::train, {.validation_share = 1.5}));
}

TEST(Classes, AreTheSameWhereOneHasNumbersForNames) {
  EXPECT_TRUE(are_same_classes({"cat", "dog"}, {"cat", "dog"}));
  EXPECT_TRUE(are_same_classes({"cat", "dog"}, {"0", "1"}));
  EXPECT_FALSE(are_same_classes({"cat", "dog"}, {"dog", "cat"}));
  EXPECT_FALSE(are_same_classes({"cat", "dog"}, {"0", "1", "2"}));
}

}  // namespace
}  // namespace fleetfit::data
