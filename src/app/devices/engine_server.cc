// A file of its own: a program that links it needs no store.
#include "fleetfit/app/workplace.h"
#include "fleetfit/measure/exec_runtime.h"
#include "fleetfit/measure/runtime.h"

namespace fleetfit::app {

Status serve_engine(std::istream& in, std::ostream& out) {
  const auto runtime = measure::make_engine_runtime();
  return measure::serve_runtime(*runtime, in, out);
}

}  // namespace fleetfit::app
