#include "fleetfit/data/recordings.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <numbers>

#include "tests/core/temporary_folder.h"
#include "tests/data/sound_files.h"
#include "tests/shared_data.h"

namespace fleetfit::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Sound> decode(std::string_view file, const SoundLimits& limits = {}) {
  return decode_wav(std::as_bytes(std::span(file)), limits);
}

Sound tone(double hertz, std::int64_t rate, std::size_t count) {
  Sound sound{.rate = rate, .samples = std::vector<float>(count)};
  for (std::size_t i = 0; i < count; ++i)
    sound.samples[i] = static_cast<float>(std::sin(
        2 * std::numbers::pi * hertz * static_cast<double>(i) / static_cast<double>(rate)));
  return sound;
}

double mean_square(std::span<const float> samples) {
  double sum = 0;
  for (const auto sample : samples) sum += double{sample} * double{sample};
  return sum / static_cast<double>(samples.size());
}

TEST(Wav, SamplesOf16BitsAreSigned) {
  const auto sound = decode(wav_file({0, 16384, -32768})).value();
  EXPECT_EQ(sound.rate, 8000);
  EXPECT_THAT(sound.samples, ElementsAre(0.0F, 0.5F, -1.0F));
}

TEST(Wav, SamplesOf8BitsAreUnsigned) {
  auto file = wav_file({}, 16000);
  file.replace(34, 2, number(8, 2));
  file.replace(40, 4, number(3, 4));
  file += std::string("\x80\xC0\x00", 3);
  const auto sound = decode(file).value();
  EXPECT_EQ(sound.rate, 16000);
  EXPECT_THAT(sound.samples, ElementsAre(0.0F, 0.5F, -1.0F));
}

TEST(Wav, ChannelsAreAveraged) {
  EXPECT_THAT(decode(wav_file({16384, 0, -16384, -16384}, 8000, 2)).value().samples,
              ElementsAre(0.25F, -0.5F));
}

TEST(Wav, OtherPartsAreSkippedAndOddOnesPadded) {
  auto file = wav_file({100});
  file.insert(12, "note" + number(3, 4) + "abc" + std::string(1, '\0'));
  EXPECT_EQ(decode(file).value().samples.size(), 1U);
}

TEST(Wav, RefusalsNameTheOffset) {
  EXPECT_THAT(decode("RIFX").error().message, HasSubstr("byte 0: no WAV file"));
  const auto whole = wav_file({1, 2, 3});
  EXPECT_THAT(decode(whole.substr(0, whole.size() - 1)).error().message,
              HasSubstr("byte 36: a part of 6 bytes of which 5 are there"));
  EXPECT_THAT(decode(whole.substr(0, 36)).error().message, HasSubstr("byte 36"));
  auto floats = whole;
  floats.replace(20, 2, number(3, 2));
  EXPECT_EQ(decode(floats).error().code, ErrorCode::unsupported);
  auto wide = whole;
  wide.replace(34, 2, number(24, 2));
  EXPECT_THAT(decode(wide).error().message, HasSubstr("byte 34: samples of 24 bits"));
  auto still = whole;
  still.replace(24, 4, number(0, 4));
  EXPECT_THAT(decode(still).error().message, HasSubstr("byte 24"));
  EXPECT_THAT(decode(whole, {.max_samples = 2}).error().message, HasSubstr("more than 2 samples"));
}

TEST(Resample, KeepsATone) {
  const auto result = resample(tone(440, 16000, 4000), 8000);
  ASSERT_EQ(result.samples.size(), 2000U);
  const auto exact = tone(440, 8000, 2000);
  for (std::size_t i = 100; i < 1900; ++i)
    EXPECT_NEAR(result.samples[i], exact.samples[i], 0.01) << i;
}

TEST(Resample, RemovesWhatTheNewRateCannotHold) {
  const auto result = resample(tone(7000, 16000, 4000), 8000);
  EXPECT_LT(mean_square(std::span(result.samples).subspan(100, 1800)), 1e-4);
}

TEST(Resample, RaisesTheRate) {
  const auto result = resample(tone(440, 8000, 2000), 16000);
  ASSERT_EQ(result.samples.size(), 4000U);
  const auto exact = tone(440, 16000, 4000);
  for (std::size_t i = 100; i < 3900; ++i)
    EXPECT_NEAR(result.samples[i], exact.samples[i], 0.02) << i;
}

TEST(FitLength, TakesTheMiddleOrPads) {
  const std::vector<float> samples{1, 2, 3, 4};
  EXPECT_THAT(fit_length(samples, 2), ElementsAre(2, 3));
  EXPECT_THAT(fit_length(samples, 7), ElementsAre(0, 1, 2, 3, 4, 0, 0));
}

class DigitArchive : public ::testing::Test {
 protected:
  // Two digits of two speakers, each six times: numbers 0 to 5.
  static std::string archive() {
    std::string tar = tar_member("recordings/", "", '5') + tar_member("README.md", "hello");
    for (const char* const digit : {"0", "1"})
      for (const char* const speaker : {"ada", "bob"})
        for (int i = 0; i < 6; ++i)
          tar += tar_member(fmt::format("recordings/{}_{}_{}.wav", digit, speaker, i),
                            wav_file({static_cast<std::int16_t>(i), 7}));
    return tar + tar_end();
  }

  core::TemporaryFolder folder_;
};

TEST_F(DigitArchive, NumbersBelowFiveAreForTesting) {
  const auto spec = "recordings:" + folder_.file("digits.tar", archive()).string();
  EXPECT_EQ(open_recordings(spec, Split::all).value()->size(), 24U);
  const auto test = open_recordings(spec, Split::test).value();
  EXPECT_EQ(test->size(), 20U);
  const auto train = open_recordings(spec, Split::train, {.validation_share = 0.25}).value();
  const auto validation =
      open_recordings(spec, Split::validation, {.validation_share = 0.25}).value();
  EXPECT_EQ(train->size(), 3U);
  EXPECT_EQ(validation->size(), 1U);
  EXPECT_THAT(train->classes(), ElementsAre("0", "1"));
  for (std::size_t i = 0; i < train->size(); ++i)
    EXPECT_EQ(train->item(i).value().sound.samples[0], 5.0F / 32768);
}

TEST_F(DigitArchive, FolderHoldsTheSame) {
  for (const char* const name :
       {"1_ada_7.wav", "0_bob_9.wav", "0_bob_1.wav", ".hidden.wav", "x.txt"})
    folder_.file(name, wav_file({1}));
  const auto data = open_recordings("recordings:" + folder_.path().string(), Split::train,
                                    {.validation_share = 0})
                        .value();
  ASSERT_EQ(data->size(), 2U);
  EXPECT_EQ(data->item(0).value().label, 0);
  EXPECT_EQ(data->item(1).value().label, 1);
}

TEST_F(DigitArchive, FoldersAreClassesWhereThereAreSeveral) {
  const auto tar = tar_member("yes/00a_nohash_0.wav", wav_file({1})) +
                   tar_member("no/00b_nohash_1.wav", wav_file({2})) + tar_end();
  const auto spec = "recordings:" + folder_.file("words.tar", tar).string();
  const auto data = open_recordings(spec, Split::all).value();
  EXPECT_THAT(data->classes(), ElementsAre("no", "yes"));
  EXPECT_EQ(data->item(0).value().label, 0);
}

TEST_F(DigitArchive, LongNamesAreWhole) {
  const auto name = "recordings/" + std::string(120, 'x') + "_y_9.wav";
  const auto tar = tar_member("././@LongLink", name + std::string(1, '\0'), 'L') +
                   tar_member(name, wav_file({1})) + tar_end();
  const auto spec = "recordings:" + folder_.file("long.tar", tar).string();
  EXPECT_THAT(open_recordings(spec, Split::all).value()->classes(),
              ElementsAre(std::string(120, 'x')));
}

TEST_F(DigitArchive, RefusalsNameFileAndOffset) {
  const auto message = [&](const std::string& content) {
    const auto spec = "recordings:" + folder_.file("bad.tar", content).string();
    return open_recordings(spec, Split::all).error().message;
  };
  const auto whole = archive();
  EXPECT_THAT(message("no archive at all"), HasSubstr("bad.tar: byte 0: the tar archive is cut"));
  EXPECT_THAT(message(std::string(512, 'x')), HasSubstr("bad.tar: byte 0: no header"));
  EXPECT_THAT(message(whole.substr(0, 1536 + 300)), HasSubstr("bad.tar: byte 1536: the tar"));
  EXPECT_THAT(message(tar_end()), HasSubstr("there are no WAV files"));
  EXPECT_THAT(message("\x1f\x8b rubbish"), HasSubstr("gzip"));
  const auto broken = tar_member("a/1_b_9.wav", "rubbish") + tar_end();
  const auto spec = "recordings:" + folder_.file("bad.tar", broken).string();
  const auto item = open_recordings(spec, Split::all).value()->item(0);
  EXPECT_THAT(item.error().message, HasSubstr("bad.tar: a/1_b_9.wav: byte 0: no WAV file"));
  EXPECT_THAT(open_recordings("sounds:x", Split::all).error().message,
              HasSubstr("recordings:PATH"));
  EXPECT_EQ(open_recordings("recordings:/none.tar", Split::all).error().code, ErrorCode::not_found);
}

TEST(Recordings, FreeSpokenDigitsAreAsPublished) {
  const auto shared = shared_data();
  const auto file = shared.value_or("") / "datasets/fsdd_recordings.tar.gz";
  if (!shared || !std::filesystem::exists(file)) GTEST_SKIP() << "no spoken digits here";
  const auto spec = "recordings:" + file.string();
  const auto test = open_recordings(spec, Split::test).value();
  EXPECT_EQ(test->size(), 300U);  // of six speakers, five of each digit
  EXPECT_EQ(test->classes().size(), 10U);
  EXPECT_EQ(open_recordings(spec, Split::all).value()->size(), 3000U);
  const auto first = test->item(0).value();
  EXPECT_EQ(first.label, 0);
  EXPECT_EQ(first.sound.rate, 8000);
  EXPECT_EQ(first.sound.samples.size(), (4812U - 44U) / 2);  // 0_george_0.wav
}

}  // namespace
}  // namespace fleetfit::data
