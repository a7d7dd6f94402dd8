#pragma once

namespace fleetfit::train {

/// The program fleetfit-train: parses the arguments, trains, prints errors as one line; gives the
/// exit status.
int run_program(int argc, char** argv);

}  // namespace fleetfit::train
