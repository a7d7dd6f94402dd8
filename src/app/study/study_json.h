#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fleetfit/app/studies.h"

namespace fleetfit::app {

nlohmann::ordered_json counts_json(const store::TrialCounts& counts);
nlohmann::ordered_json rung_json(const RungView& rung);
/// `labels` are those of the objective's numbers.
nlohmann::ordered_json trial_json(const std::vector<std::string>& labels, const TrialView& trial);

}  // namespace fleetfit::app
