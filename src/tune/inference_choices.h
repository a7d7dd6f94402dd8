#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/tune/inference.h"

namespace fleetfit::tune {

/// All settings that a question has: each combination of these. None is empty.
struct InferenceChoices {
  std::vector<std::int64_t> batches = {};  ///< in increasing order
  std::vector<std::optional<std::int64_t>> cores = {};
  std::vector<std::optional<std::int64_t>> threads = {};
  std::vector<std::optional<std::string>> precisions = {};

  std::size_t count() const {
    return batches.size() * cores.size() * threads.size() * precisions.size();
  }
};

/// The parameters must have passed the check. Long ranges are cut: those of batches at 4096
/// values, others at ten. Batches that the scenario never forms are left out.
InferenceChoices choices_of(const InferenceStudy& study);

/// The setting that a point of these parameters means.
InferenceSetting setting_of(const Parameters& parameters, std::span<const double> point);

/// Those of a long list of batches that are priced first: the nearest to the powers of two, and the
/// ends. All of a short list.
std::vector<std::int64_t> first_batches(std::span<const std::int64_t> batches);

}  // namespace fleetfit::tune
