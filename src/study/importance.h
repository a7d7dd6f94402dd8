#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "study/sample.h"

namespace fleetfit::study {

/// How much of the order of trials, from best to worst, one parameter explains by itself.
struct ParameterImportance {
  std::size_t parameter = 0;  ///< of the study
  double share = 0;           ///< 0 to 1; what chance alone would explain is taken off
  std::string best_at = {};   ///< "0.001 to 0.004", "34"
  std::size_t trials = 0;     ///< in which it meant something
};

/// Trials are compared at one level, as those with more budget are better anyway.
struct ImportanceReport {
  std::vector<ParameterImportance> parameters = {};  ///< most important first
  tune::Budget budget = {};
  std::size_t trials = 0;
};

/// Of each parameter, trials are put into groups by its value (a range is cut into up to eight
/// groups of equal size), and the variance between the groups' mean ranks is compared with that of
/// all ranks: the correlation ratio, without what as many groups would explain by chance. It does
/// not see what parameters do together. No parameters if there are fewer than ten trials.
ImportanceReport importance_of(const tune::Study& study, std::span<const SeenTrial> trials);

}  // namespace fleetfit::study
