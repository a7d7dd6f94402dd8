#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "fleetfit/core/result.h"

namespace fleetfit::app {

/// The folder of a fit: results of steps that take long, under names that tell what they were made
/// from, and the seconds that steps took, whichever run did them.
class FitFolder {
 public:
  /// Reads `steps.json`, if it is there; one that is damaged counts as none.
  explicit FitFolder(std::filesystem::path folder);

  const std::filesystem::path& path() const { return folder_; }

  /// "PREFIX-1f2e3d4c5b6a.SUFFIX", by the content's digest.
  std::filesystem::path named(std::string_view prefix, std::string_view content,
                              std::string_view suffix) const;

  /// Adds seconds to those of a step, and keeps them.
  Status add_seconds(const std::string& step, double seconds);
  double seconds(const std::string& step) const;

  /// The same for numbers that are set once.
  Status set_number(const std::string& name, double value);
  double number(const std::string& name) const { return seconds(name); }

 private:
  Status save() const;

  std::filesystem::path folder_;
  std::map<std::string, double> numbers_;
};

}  // namespace fleetfit::app
