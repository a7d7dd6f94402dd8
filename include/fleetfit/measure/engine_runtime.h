#pragma once

#include <memory>

#include "fleetfit/measure/runtime.h"

namespace fleetfit::measure {

/// The engine in this process as a runtime. `LoadOptions::kernels` is "auto", "onednn", "xnnpack"
/// or "reference"; choices are a JSON object of questions and answers.
std::unique_ptr<Runtime> make_engine_runtime();

}  // namespace fleetfit::measure
