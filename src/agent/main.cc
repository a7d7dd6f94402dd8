#include "agent/program.h"

int main(int argc, char** argv) { return fleetfit::agent::run_program(argc, argv); }
