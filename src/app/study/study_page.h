#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/study/study_sample.h"

namespace fleetfit::app {

struct StudyPageInput {
  OpenedStudy opened = {};
  StudySample sample = {};
  std::optional<std::int64_t> best = std::nullopt;   ///< number of the best trial
  std::vector<store::InferenceRecord> tunings = {};  ///< that were done for the study
};

/// A page of HTML: what to deploy, how the search went, what the parameters did, what it cost.
std::string study_page(const StudyPageInput& input);

}  // namespace fleetfit::app
