#pragma once

#include "fleetfit/store/study_store.h"
#include "tests/store/example_records.h"

namespace fleetfit::store {

inline StudyRecord example_study(const std::string& name = "s") {
  return {.name = name, .definition = "name: " + name + "\n", .seed = 7, .created = date()};
}

/// Every field has a value, each another one.
inline LevelRecord example_level(std::int64_t level = 0) {
  return {.level = level,
          .epochs = 4 + level,
          .data_fraction = 0.25,
          .accuracy = 0.83,
          .loss = 1.25,
          .training_s = 12.5,
          .training_j = 340.0,
          .metrics = R"({"f1":0.8})",
          .epoch_values = "[0.5,0.7,0.83]",
          .worker = "host:1",
          .started = date(100),
          .ended = date(200)};
}

/// Just what a level must have.
inline LevelRecord plain_level(std::int64_t level = 0) { return {.level = level}; }

/// Every field has a value, each another one.
inline TrialRecord full_trial(std::int64_t number) {
  return {.number = number,
          .params = R"({"layers":18})",
          .bracket = 1,
          .level = 3,
          .state = TrialState::running,
          .reason = "others were better",
          .structure = "beef",
          .model_file = "out.onnx",
          .attempts = 2,
          .worker = "host:1",
          .lease_until = date(500),
          .stop_requested = true,
          .progress = "epoch 2 of 4",
          .score = -1.5,
          .levels = {example_level(1), example_level(2)}};
}

inline std::vector<TrialRecord> queued_trials(std::int64_t first, std::int64_t count) {
  std::vector<TrialRecord> trials;
  for (std::int64_t i = 0; i < count; ++i) trials.push_back({.number = first + i});
  return trials;
}

}  // namespace fleetfit::store
