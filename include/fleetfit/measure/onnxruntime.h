#pragma once

#include <string>
#include <vector>

#include "fleetfit/core/result.h"

namespace fleetfit::measure {

/// The command that starts ONNX Runtime as a runtime for `start_exec_runtime`. Its program is
/// looked for in $FLEETFIT_RUNTIMES/onnxruntime if that is set; else beside the running program,
/// where a build tree and an installation keep it. Fails with `not_found`, saying how to install
/// it.
Result<std::vector<std::string>> onnxruntime_command();

}  // namespace fleetfit::measure
