#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "data/archive.h"
#include "data/sources.h"
#include "fleetfit/data/recordings.h"
#include "fleetfit/data/texts.h"

namespace {

using namespace fleetfit::data;

void use_sound(std::span<const std::byte> bytes) {
  const auto sound = decode_wav(bytes, {.max_samples = 1 << 14});
  if (!sound) return;
  constexpr std::int64_t kRate = 8000;
  constexpr std::int64_t kMostOften = 100;  // as much as a rate of 80 Hz would become longer
  if (sound->rate * kMostOften >= kRate) static_cast<void>(resample(*sound, kRate));
  constexpr std::size_t kLength = 100;
  if (fit_length(sound->samples, kLength).size() != kLength) std::abort();
}

void use_text(const std::string& text) {
  Texts texts{.classes = {"a", "b", "c", "d"}};
  if (!append_rows(text, "fuzz", texts)) return;
  if (texts.texts.size() != texts.labels.size()) std::abort();
  const auto vocabulary = Vocabulary::most_frequent(texts.texts, 10);
  for (const auto& each : texts.texts)
    if (vocabulary.encode(each, 5).size() != 5) std::abort();
  if (!Vocabulary::parse(vocabulary.text())) std::abort();
}

}  // namespace

// A WAV file, a tar archive of such files, or rows of AG News.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  use_sound(std::as_bytes(std::span(data, size)));
  if (const auto entries = read_tar(text)) {
    for (const auto& entry : *entries) {
      if (entry.offset > size || entry.size > size - entry.offset) std::abort();
      use_sound(std::as_bytes(std::span(data, size).subspan(entry.offset, entry.size)));
    }
  }
  use_text(text);
  return 0;
}
