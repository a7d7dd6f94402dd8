#include "fleetfit/data/recordings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "data/archive.h"
#include "data/sources.h"
#include "fleetfit/core/file.h"

namespace fleetfit::data {
namespace {

namespace fs = std::filesystem;

/// A WAV file: by itself, or a part of an archive.
struct Place {
  std::string name;        ///< its path, or that in the archive
  std::size_t offset = 0;  ///< in the archive
  std::size_t size = 0;
  std::string class_name = {};
  bool is_test = false;
  std::int64_t label = 0;
};

class WavFiles final : public Recordings {
 public:
  WavFiles(std::string source, std::string archive, std::vector<Place> places)
      : source_(std::move(source)), archive_(std::move(archive)), places_(std::move(places)) {
    std::set<std::string> names;
    for (const auto& place : places_) names.insert(place.class_name);
    classes_.assign(names.begin(), names.end());
    for (auto& place : places_)
      place.label = std::ranges::lower_bound(classes_, place.class_name) - classes_.begin();
  }

  std::size_t size() const override { return places_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::vector<Place>& places() { return places_; }

  Result<LabelledSound> item(std::size_t index) const override {
    const auto& place = places_[index];
    std::string content;
    if (archive_.empty()) {
      FLEETFIT_ASSIGN(content, core::read_file(place.name));
    }
    const auto bytes = archive_.empty()
                           ? std::string_view(content)
                           : std::string_view(archive_).substr(place.offset, place.size);
    auto sound = decode_wav(std::as_bytes(std::span(bytes)));
    const auto name = archive_.empty() ? place.name : source_ + ": " + place.name;
    if (!sound) return core::within(name, std::move(sound.error()));
    return LabelledSound{.sound = *std::move(sound), .label = place.label};
  }

 private:
  std::string source_;
  std::string archive_;
  std::vector<Place> places_;
  std::vector<std::string> classes_;
};

bool is_wav_name(std::string_view name) { return name.ends_with(".wav") || name.ends_with(".WAV"); }

/// The last number of class_speaker_number, as the Free Spoken Digit Dataset writes it.
std::optional<int> take_number(std::string_view stem) {
  const auto last = stem.rfind('_');
  if (last == std::string_view::npos || last == stem.find('_')) return std::nullopt;
  int number = 0;
  const auto* const end = stem.data() + stem.size();
  const auto [stop, error] = std::from_chars(stem.data() + last + 1, end, number);
  if (error != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

/// A folder for each class if there are several folders, else names that begin with the class.
void classify(std::vector<Place>& places) {
  constexpr int kFirstForTraining = 5;
  std::set<fs::path> folders;
  for (const auto& place : places) folders.insert(fs::path(place.name).parent_path());
  for (auto& place : places) {
    const fs::path path(place.name);
    if (folders.size() > 1) {
      place.class_name = path.parent_path().filename().string();
      continue;
    }
    const auto stem = path.stem().string();
    const auto number = take_number(stem);
    place.class_name = stem.substr(0, stem.find('_'));
    place.is_test = number && *number < kFirstForTraining;
  }
}

Result<std::vector<Place>> places_in_archive(std::string_view archive) {
  FLEETFIT_ASSIGN(const auto entries, read_tar(archive));
  std::vector<Place> places;
  for (const auto& entry : entries) {
    const fs::path path(entry.name);
    if (!is_wav_name(entry.name) || path.filename().string().starts_with('.')) continue;
    places.push_back({.name = entry.name, .offset = entry.offset, .size = entry.size});
  }
  return places;
}

Result<std::vector<Place>> places_in_folder(const fs::path& folder) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  std::vector<Place> places;
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const auto name = entry->path().filename().string();
    if (!is_wav_name(name) || name.starts_with('.') || !entry->is_regular_file()) continue;
    places.push_back({.name = entry->path().string()});
  }
  if (error) return fail(ErrorCode::io, fmt::format("{}: {}", folder.string(), error.message()));
  return places;
}

Result<std::unique_ptr<WavFiles>> open_wav_files(const fs::path& path) {
  std::error_code ignored;
  std::string archive;
  auto places = Result<std::vector<Place>>();
  if (fs::is_directory(path, ignored)) {
    places = places_in_folder(path);
  } else {
    FLEETFIT_ASSIGN(archive, unpacked(core::read_file(path), path.string()));
    places = places_in_archive(archive);
    if (!places) return core::within(path.string(), places.error());
  }
  FLEETFIT_TRY(places);
  if (places->empty())
    return fail(ErrorCode::invalid_input, fmt::format("{}: there are no WAV files", path.string()));
  classify(*places);
  std::ranges::sort(*places, {}, &Place::name);
  return std::make_unique<WavFiles>(path.string(), std::move(archive), *std::move(places));
}

/// Those of a split. Numbered recordings say themselves which are for testing.
std::vector<std::size_t> chosen(const std::vector<Place>& places, Split split,
                                SplitOptions options) {
  std::vector<std::size_t> test;
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < places.size(); ++i) (places[i].is_test ? test : rest).push_back(i);
  if (test.empty() || split == Split::all) return chosen_items(places.size(), split, options);
  if (split == Split::test) return test;
  options.test_share = 0;
  auto indices = chosen_items(rest.size(), split, options);
  for (auto& index : indices) index = rest[index];
  return indices;
}

class SomeRecordings final : public Recordings {
 public:
  SomeRecordings(std::unique_ptr<Recordings> all, std::vector<std::size_t> indices)
      : all_(std::move(all)), indices_(std::move(indices)) {}

  std::size_t size() const override { return indices_.size(); }
  const std::vector<std::string>& classes() const override { return all_->classes(); }
  Result<LabelledSound> item(std::size_t index) const override {
    return all_->item(indices_[index]);
  }

 private:
  std::unique_ptr<Recordings> all_;
  std::vector<std::size_t> indices_;
};

}  // namespace

Result<std::unique_ptr<Recordings>> open_recordings(std::string_view spec, Split split,
                                                    const SplitOptions& options) {
  constexpr std::string_view kKind = "recordings:";
  if (!spec.starts_with(kKind) || spec.size() == kKind.size())
    return fail(ErrorCode::invalid_input,
                fmt::format("'{}' are no recordings; they are named by recordings:PATH", spec));
  auto files = open_wav_files(fs::path(spec.substr(kKind.size())));
  if (!files) return core::within(spec.substr(0, kKind.size() - 1), files.error());
  auto indices = chosen((*files)->places(), split, options);
  if (indices.empty())
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: there are no recordings for '{}'", spec, to_string(split)));
  return std::make_unique<SomeRecordings>(*std::move(files), std::move(indices));
}

}  // namespace fleetfit::data
