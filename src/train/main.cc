#include "train/program.h"

int main(int argc, char** argv) { return fleetfit::train::run_program(argc, argv); }
