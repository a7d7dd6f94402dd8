#pragma once

namespace fleetfit::agent {

/// The program `fleetfit-agent`; gives its exit status.
int run_program(int argc, char** argv);

}  // namespace fleetfit::agent
