#include "tests/source_dir.h"

namespace fleetfit {

std::string source_dir() { return FLEETFIT_SOURCE_DIR; }

}  // namespace fleetfit
