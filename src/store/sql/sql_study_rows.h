#pragma once

#include <optional>
#include <string>

#include "fleetfit/store/study_records.h"

/// Rows of the tables of studies that are no records of their own.
namespace fleetfit::store {

/// Of a study, what changes with its trials.
struct Progress {
  std::int64_t study = 0;
  std::int64_t change = 0;
  TrialCounts counts = {};
};
core::Fields fields_of(const Progress*);

struct Lead {
  std::int64_t study = 0;
  std::string tuner = {};
  std::optional<Time> until = std::nullopt;
};
core::Fields fields_of(const Lead*);

struct LevelOfTrial {
  std::int64_t trial = 0;
  LevelRecord level = {};
};
core::Fields fields_of(const LevelOfTrial*);

}  // namespace fleetfit::store
