#include "cli/program.h"

namespace fleetfit::cli {

void add_study_import(CLI::App& /*study*/, Context& /*context*/) {}

}  // namespace fleetfit::cli
