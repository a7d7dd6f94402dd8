#pragma once

#include <string>
#include <string_view>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/result.h"
#include "fleetfit/engine/program.h"
#include "fleetfit/measure/device.h"

namespace fleetfit::app {

engine::Library library_of(const std::string& runtime);

/// What `KernelChoices::known` gave.
engine::Choices parse_choices(const std::string& text);

/// How the engine in this process runs networks as the device does, with the kernels that are known
/// to be the fastest. Fails with `unsupported` for a device of int8, one with limits or cores of
/// its own, and one of another runtime; `not_found` if there is none of that name.
Result<engine::EngineOptions> engine_options(Workplace& workplace, std::string_view name);

}  // namespace fleetfit::app
