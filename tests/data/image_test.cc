#include "fleetfit/data/image.h"

#include <gmock/gmock.h>

#include "tests/core/temporary_folder.h"
#include "tests/data/image_files.h"
#include "tests/shared_data.h"

namespace fleetfit::data {
namespace {

using ::testing::HasSubstr;

Image colourful() {
  Image image{.height = 3, .width = 5, .channels = 3};
  for (int i = 0; i < 45; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i * 5));
  return image;
}

Image grey() {
  Image image{.height = 2, .width = 3, .channels = 1, .pixels = {0, 50, 100, 150, 200, 255}};
  return image;
}

/// A picture of one colour: JPEG keeps it up to rounding.
Image flat(std::int64_t channels, const std::vector<std::uint8_t>& colour) {
  Image image{.height = 17, .width = 21, .channels = channels};
  for (int i = 0; i < 17 * 21; ++i)
    image.pixels.insert(image.pixels.end(), colour.begin(), colour.end());
  return image;
}

void expect_refused(const std::string& file, ErrorCode code, const std::string& message) {
  const auto image = decode(file);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, code);
  EXPECT_THAT(image.error().message, HasSubstr(message));
}

TEST(Png, IsReadExactly) {
  EXPECT_EQ(decode(png_file(colourful())).value(), colourful());
  EXPECT_EQ(decode(png_file(grey())).value(), grey());
}

TEST(Png, OfAPaletteIsReadAsColours) {
  const std::vector<std::uint8_t> palette{10, 20, 30, 200, 100, 0};
  const Image indices{.height = 1, .width = 3, .channels = 1, .pixels = {1, 0, 1}};
  const auto image = decode(png_file(indices, PNG_FORMAT_RGB_COLORMAP, palette.data(), 2)).value();
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{200, 100, 0, 10, 20, 30, 200, 100, 0}));
}

TEST(Png, WithTransparencyIsPutOnBlack) {
  const Image image{
      .height = 1, .width = 2, .channels = 4, .pixels = {90, 80, 70, 255, 90, 80, 70, 0}};
  const auto read = decode(png_file(image, PNG_FORMAT_RGBA)).value();
  EXPECT_EQ(read.pixels, (std::vector<std::uint8_t>{90, 80, 70, 0, 0, 0}));
}

TEST(Jpeg, IsReadUpToItsLoss) {
  for (const bool progressive : {false, true}) {
    const auto colour = decode(jpeg_file(flat(3, {200, 60, 20}), {.progressive = progressive}));
    ASSERT_TRUE(colour) << colour.error().message;
    EXPECT_EQ(colour->channels, 3);
    EXPECT_EQ(colour->height, 17);
    EXPECT_EQ(colour->width, 21);
    EXPECT_NEAR(colour->pixels[0], 200, 3);
    EXPECT_NEAR(colour->pixels[1], 60, 3);
    EXPECT_NEAR(colour->pixels.back(), 20, 3);
  }
  const auto plain = decode(jpeg_file(flat(1, {77}), {.pixels = JCS_GRAYSCALE})).value();
  EXPECT_EQ(plain.channels, 1);
  EXPECT_NEAR(plain.pixels[100], 77, 1);
}

TEST(Jpeg, InPrintersColoursIsRefused) {
  expect_refused(jpeg_file(flat(4, {1, 2, 3, 4}), {.pixels = JCS_CMYK}), ErrorCode::unsupported,
                 "other colours");
}

// Two rows of two pixels, blue first, each row filled up to eight bytes.
const std::string kRows =
    std::string("\1\2\3\4\5\6\0\0", 8) + std::string("\7\10\11\12\13\14\0\0", 8);

TEST(Bmp, IsReadFromBottomToTopAndFromTopToBottom) {
  const std::vector<std::uint8_t> first{3, 2, 1, 6, 5, 4};
  const std::vector<std::uint8_t> second{9, 8, 7, 12, 11, 10};
  auto upwards = second;
  upwards.insert(upwards.end(), first.begin(), first.end());
  auto downwards = first;
  downwards.insert(downwards.end(), second.begin(), second.end());
  EXPECT_EQ(decode(bmp_file({.width = 2, .height = 2}, kRows)).value().pixels, upwards);
  EXPECT_EQ(decode(bmp_file({.width = 2, .height = -2}, kRows)).value().pixels, downwards);
}

TEST(Bmp, OfAPaletteIsReadAsColours) {
  const std::string palette("\1\2\3\0\4\5\6\0", 8);
  const std::string row("\1\0\1\0", 4);
  const BmpHeader header{.width = 3, .height = 1, .bits = 8, .colours = 2};
  const auto image = decode(bmp_file(header, palette + row, 8)).value();
  EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{6, 5, 4, 3, 2, 1, 6, 5, 4}));
  const std::string beyond("\2\0\0\0", 4);
  expect_refused(bmp_file(header, palette + beyond, 8), ErrorCode::invalid_input, "colour 2 of 2");
}

TEST(Bmp, OfOtherKindsIsRefused) {
  expect_refused(bmp_file({.width = 2, .height = 2, .bits = 16}, kRows), ErrorCode::unsupported,
                 "16 bits");
  expect_refused(bmp_file({.width = 2, .height = 2, .method = 1}, kRows), ErrorCode::unsupported,
                 "method 1");
  const BmpHeader huge{.width = 3, .height = 1, .bits = 8, .colours = 4000};
  expect_refused(bmp_file(huge, kRows), ErrorCode::invalid_input, "4000 colours");
}

TEST(ReadImage, RefusesEveryFileThatIsCutShort) {
  for (const auto& file : {png_file(colourful()), jpeg_file(flat(3, {200, 60, 20}), {}),
                           jpeg_file(flat(3, {200, 60, 20}), {.progressive = true}),
                           bmp_file({.width = 2, .height = 2}, kRows)}) {
    ASSERT_TRUE(decode(file));
    for (std::size_t size = 0; size + 12 < file.size(); ++size)
      EXPECT_FALSE(decode(file.substr(0, size))) << size << " of " << file.size();
  }
}

TEST(ReadImage, RefusesSizesBeyondTheLimitBeforeItTakesTheMemory) {
  const ImageLimits small{.max_pixels = 5};
  for (const auto& file : {png_file(grey()), jpeg_file(flat(3, {1, 2, 3}), {}),
                           bmp_file({.width = 3, .height = 2}, kRows)}) {
    const auto image = decode(file, small);
    ASSERT_FALSE(image);
    EXPECT_THAT(image.error().message, HasSubstr("larger than 5 pixels"));
  }
  const std::int32_t most = 2147483647;
  EXPECT_FALSE(decode(bmp_file({.width = most, .height = most}, kRows)));
  EXPECT_FALSE(decode(bmp_file({.width = most, .height = -most - 1}, kRows)));
  EXPECT_FALSE(decode(bmp_file({.width = -2, .height = 2}, kRows)));
  EXPECT_FALSE(decode(bmp_file({.width = 0, .height = 2}, kRows)));
}

TEST(ReadImage, NamesTheFile) {
  const core::TemporaryFolder folder;
  const auto broken = read_image(folder.file("broken.png", png_file(grey()).substr(0, 30)));
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("broken.png: broken PNG"));
  const auto text = read_image(folder.file("text.png", "hello"));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::unsupported);
  const auto missing = read_image(folder.path() / "none.png");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
}

TEST(ReadImage, ReadsARealPhotograph) {
  const auto data = shared_data();
  if (!data || !std::filesystem::exists(*data / "images/bird.bmp"))
    GTEST_SKIP() << "no shared data";
  const auto bird = read_image(*data / "images/bird.bmp").value();
  EXPECT_EQ(bird.width, 512);
  EXPECT_EQ(bird.height, 343);
  // The first bytes of its pixels, 16 27 14 14 23 12, are the lower left corner.
  const auto corner = static_cast<std::size_t>(342 * 512 * 3);
  EXPECT_THAT(std::vector(bird.pixels.begin() + corner, bird.pixels.begin() + corner + 6),
              ::testing::ElementsAre(0x14, 0x27, 0x16, 0x12, 0x23, 0x14));
}

}  // namespace
}  // namespace fleetfit::data
