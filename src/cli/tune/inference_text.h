#pragma once

#include <string>

#include "fleetfit/app/inference_tuning.h"

namespace fleetfit::cli {

/// A real run beside what was expected, for people.
std::string confirmed_text(const app::ConfirmedInference& confirmed);

}  // namespace fleetfit::cli
