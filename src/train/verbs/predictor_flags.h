#pragma once

#include "train/verbs/verb.h"

namespace fleetfit::train {

/// Of the verbs that learn from samples of times.
struct PredictorFlags {
  CommonFlags common;
  std::string samples;
  std::string output;
  double budget_s = 0;
  TrainingOptions training;

  /// A part of the work gets this share of all time, at most what is left.
  TrainingOptions options(const Work& work, double share) const;
};

/// Adds a verb with these flags and an example; `run` is its action.
void add_predictor_verb(CLI::App& program, Action& action, const std::string& name,
                        const std::string& summary, Result<int> (*run)(const PredictorFlags&));

}  // namespace fleetfit::train
