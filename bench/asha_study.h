#pragma once

#include <cstddef>

#include "fleetfit/tune/study.h"

/// A study of three parameters under ASHA with levels of 1, 3, 9 and 27 epochs, to load a tuner
/// with.
inline fleetfit::tune::Study asha_study(std::size_t trials, fleetfit::tune::SamplerKind sampler) {
  using namespace fleetfit::tune;
  Study study;
  study.parameters = Parameters::create({{.name = "x", .low = 0, .high = 1},
                                         {.name = "y", .low = 1e-4, .high = 1, .log = true},
                                         {.name = "kind", .values = {"a", "b", "c"}}})
                         .value();
  study.objective.goals = {{.metric = Metric::accuracy, .maximize = true}};
  study.budget = {.kind = BudgetKind::epochs,
                  .min_epochs = 1,
                  .max_epochs = 27,
                  .eta = 3,
                  .max_trials = trials};
  study.algorithm = {.sampler = sampler, .scheduler = SchedulerKind::asha};
  return study;
}
