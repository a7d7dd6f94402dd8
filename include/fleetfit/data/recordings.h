#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/data/dataset.h"

/// Labelled sounds. docs/formats/datasets.md has the files.
namespace fleetfit::data {

/// One channel of sound; samples between -1 and 1.
struct Sound {
  std::int64_t rate = 0;  ///< samples per second
  std::vector<float> samples;

  bool operator==(const Sound&) const = default;
};

struct SoundLimits {
  std::size_t max_samples = std::size_t{1} << 26;  ///< of all channels together
};

/// Reads a WAV file (RIFF): PCM of 8 or 16 bits; several channels are averaged. Files that are
/// broken or cut short are `invalid_input`, other encodings `unsupported`; the message names the
/// offset.
Result<Sound> decode_wav(std::span<const std::byte> bytes, const SoundLimits& limits = {});

/// The same sound at another rate; frequencies that the new rate cannot hold are filtered out.
Sound resample(const Sound& sound, std::int64_t rate);

/// Exactly so many samples: the middle of a longer sound, a shorter one between silence.
std::vector<float> fit_length(std::span<const float> samples, std::size_t length);

struct LabelledSound {
  Sound sound;
  std::int64_t label = 0;
};

/// Sounds in a fixed order. Immutable; safe to use from many threads.
class Recordings {
 public:
  virtual ~Recordings() = default;

  virtual std::size_t size() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;

  /// Fails if its file cannot be read, naming it. `index` is below size().
  virtual Result<LabelledSound> item(std::size_t index) const = 0;
};

/// Opens `recordings:PATH`: a folder or a tar archive, compressed by gzip or not, with WAV files in
/// a folder for each class (Speech Commands) or with names of the form class_speaker_number.wav
/// (the Free Spoken Digit Dataset, whose numbers below 5 are for testing). Errors as
/// `open_dataset`.
Result<std::unique_ptr<Recordings>> open_recordings(std::string_view spec, Split split,
                                                    const SplitOptions& options = {});

}  // namespace fleetfit::data
