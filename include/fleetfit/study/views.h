#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "fleetfit/core/result.h"
#include "fleetfit/store/study_store.h"

/// Parts of a study for a page that shows it while it goes on (docs/fleet.md). None takes longer
/// with more trials. All fail with `not_found` if there is no such study.
namespace fleetfit::study {

/// As `study show`, without the trials.
Result<nlohmann::ordered_json> study_overview(store::StudyStore& store, std::string_view name);

/// Some trials as `study show` gives them, by number, from `first`.
Result<nlohmann::ordered_json> study_trials(store::StudyStore& store, std::string_view name,
                                            std::int64_t first, std::size_t limit);

/// History, Pareto set, rungs and parallel coordinates, of at most `most` trials: all of a small
/// study; of a large one the first, the last, the best and some in between.
Result<nlohmann::ordered_json> study_charts(store::StudyStore& store, std::string_view name,
                                            std::size_t most);

}  // namespace fleetfit::study
