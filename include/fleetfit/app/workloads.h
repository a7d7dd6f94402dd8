#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "fleetfit/workloads/workloads.h"

/// Use cases on the built-in workloads: which there are, and what they take.
namespace fleetfit::app {

/// [{"name", "summary", "data", "accuracy"}]
nlohmann::ordered_json workloads_json(std::span<const workloads::Workload> all);

/// {"name", "summary", "data", "accuracy", "parameters": [{"name", "group", "type", "default",
/// "min", "max", "choices", "summary"}], "study"}
nlohmann::ordered_json workload_json(const workloads::Workload& workload);

}  // namespace fleetfit::app
