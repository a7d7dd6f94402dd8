#pragma once

#include "fleetfit/store/study_records.h"
#include "fleetfit/tune/budget.h"
#include "fleetfit/tune/trial_process.h"

namespace fleetfit::tune {

/// The numbers of a level that a trial has ended.
store::LevelRecord level_record(std::int64_t level, const Budget& budget,
                                const TrialOutcome& outcome);

}  // namespace fleetfit::tune
