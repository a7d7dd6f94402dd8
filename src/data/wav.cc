#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "data/archive.h"
#include "fleetfit/data/recordings.h"

namespace fleetfit::data {
namespace {

using Bytes = std::span<const std::byte>;

bool has_tag(Bytes bytes, std::size_t at, std::string_view tag) {
  if (bytes.size() < at + tag.size()) return false;
  return std::equal(tag.begin(), tag.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
}

tl::unexpected<Error> broken(std::size_t offset, std::string_view what,
                             ErrorCode code = ErrorCode::invalid_input) {
  return fail(code, fmt::format("byte {}: {}", offset, what));
}

struct Format {
  std::uint32_t channels = 0;
  std::uint32_t rate = 0;
  std::uint32_t bits = 0;

  std::size_t frame_bytes() const { return std::size_t{channels} * bits / 8; }
};

constexpr std::size_t kFormatBytes = 16;
constexpr std::uint32_t kPcm = 1;
constexpr std::uint32_t kExtensible = 0xFFFE;
constexpr std::uint32_t kMostRate = 1'000'000;
constexpr std::uint32_t kMostChannels = 64;

/// The chunk "fmt " at an offset.
Result<Format> read_format(Bytes bytes, std::size_t at, std::size_t size) {
  if (size < kFormatBytes) return broken(at, "the format of the WAV file is cut short");
  auto encoding = little_endian(bytes, at, 2);
  constexpr std::size_t kSubFormat = 24;
  if (encoding == kExtensible && size >= kSubFormat + 2)
    encoding = little_endian(bytes, at + kSubFormat, 2);
  const Format format{.channels = little_endian(bytes, at + 2, 2),
                      .rate = little_endian(bytes, at + 4, 4),
                      .bits = little_endian(bytes, at + 14, 2)};
  if (encoding != kPcm)
    return broken(at, fmt::format("encoding {} of a WAV file; only PCM (1) is known", encoding),
                  ErrorCode::unsupported);
  if (format.bits != 8 && format.bits != 16)
    return broken(at + 14, fmt::format("samples of {} bits; only 8 and 16 are known", format.bits),
                  ErrorCode::unsupported);
  if (format.rate == 0 || format.rate > kMostRate)
    return broken(at + 4, fmt::format("{} samples per second", format.rate));
  if (format.channels == 0 || format.channels > kMostChannels)
    return broken(at + 2, fmt::format("{} channels", format.channels));
  return format;
}

/// 8 bits are unsigned, 16 are signed.
float sample_at(Bytes bytes, std::size_t at, std::uint32_t bits) {
  if (bits == 8) return (static_cast<float>(little_endian(bytes, at, 1)) - 128) / 128;
  const auto value = static_cast<std::int16_t>(little_endian(bytes, at, 2));
  return static_cast<float>(value) / 32768;
}

Sound read_samples(Bytes data, const Format& format) {
  Sound sound{.rate = format.rate,
              .samples = std::vector<float>(data.size() / format.frame_bytes())};
  const std::size_t width = format.bits / 8;
  for (std::size_t i = 0; i < sound.samples.size(); ++i) {
    float sum = 0;
    for (std::size_t c = 0; c < format.channels; ++c)
      sum += sample_at(data, i * format.frame_bytes() + c * width, format.bits);
    sound.samples[i] = sum / static_cast<float>(format.channels);
  }
  return sound;
}

/// A low pass that lets `cutoff` of the frequencies of the old rate through, at a distance.
double kernel(double distance, double cutoff, double reach) {
  if (std::abs(distance) >= reach) return 0;
  const double x = std::numbers::pi * distance * cutoff;
  const double sinc = std::abs(x) < 1e-9 ? 1 : std::sin(x) / x;
  return cutoff * sinc * 0.5 * (1 + std::cos(std::numbers::pi * distance / reach));
}

}  // namespace

Result<Sound> decode_wav(Bytes bytes, const SoundLimits& limits) {
  constexpr std::size_t kHeader = 12;
  constexpr std::size_t kChunk = 8;
  if (!has_tag(bytes, 0, "RIFF") || !has_tag(bytes, 8, "WAVE")) return broken(0, "no WAV file");
  std::optional<Format> format;
  for (std::size_t at = kHeader; at + kChunk <= bytes.size();) {
    const std::size_t size = little_endian(bytes, at + 4, 4);
    const auto content = at + kChunk;
    if (size > bytes.size() - content)
      return broken(at, fmt::format("a part of {} bytes of which {} are there", size,
                                    bytes.size() - content));
    if (has_tag(bytes, at, "fmt ")) {
      FLEETFIT_ASSIGN(format, read_format(bytes, content, size));
    } else if (has_tag(bytes, at, "data")) {
      if (!format) return broken(at, "samples before their format");
      if (size / (format->bits / 8) > limits.max_samples)
        return broken(at, fmt::format("more than {} samples", limits.max_samples));
      if (size % format->frame_bytes() != 0) return broken(at, "the last sample is cut short");
      return read_samples(bytes.subspan(content, size), *format);
    }
    at = content + size + size % 2;
  }
  return broken(bytes.size(), "the WAV file ends without samples");
}

Sound resample(const Sound& sound, std::int64_t rate) {
  if (rate == sound.rate || sound.samples.empty()) return {.rate = rate, .samples = sound.samples};
  constexpr double kCrossings = 12;
  const double ratio = static_cast<double>(rate) / static_cast<double>(sound.rate);
  const double cutoff = std::min(1.0, ratio);
  const double reach = kCrossings / cutoff;
  const auto last = std::ssize(sound.samples) - 1;
  Sound result{.rate = rate, .samples = {}};
  result.samples.resize(static_cast<std::size_t>(
      std::max(1.0, std::round(static_cast<double>(sound.samples.size()) * ratio))));
  for (std::size_t i = 0; i < result.samples.size(); ++i) {
    const double center = static_cast<double>(i) / ratio;
    const auto begin = std::max<std::int64_t>(0, std::llround(std::ceil(center - reach)));
    const auto end = std::min<std::int64_t>(last, std::llround(std::floor(center + reach)));
    double sum = 0;
    for (auto k = begin; k <= end; ++k)
      sum += sound.samples[static_cast<std::size_t>(k)] *
             kernel(static_cast<double>(k) - center, cutoff, reach);
    result.samples[i] = static_cast<float>(sum);
  }
  return result;
}

std::vector<float> fit_length(std::span<const float> samples, std::size_t length) {
  std::vector<float> fitted(length);
  if (samples.size() >= length) {
    const auto middle = samples.subspan((samples.size() - length) / 2, length);
    std::ranges::copy(middle, fitted.begin());
  } else {
    const auto before = (length - samples.size()) / 2;
    std::ranges::copy(samples, fitted.begin() + static_cast<std::ptrdiff_t>(before));
  }
  return fitted;
}

}  // namespace fleetfit::data
