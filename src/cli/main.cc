#include "cli/program.h"

int main(int argc, char** argv) { return fleetfit::cli::run_program(argc, argv); }
