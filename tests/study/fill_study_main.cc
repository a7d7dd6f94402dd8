// Fills a store with made-up studies, to look at pages and to time what people wait for:
//   fill_study sqlite:FILE TRIALS
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "tests/study/example_study.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: fill_study STORE TRIALS\n", stderr);
    return 2;
  }
  try {
    const auto store = fleetfit::store::open_store(argv[1]).value();
    const fleetfit::app::ExampleTrials trials{.count = std::atoll(argv[2])};
    fleetfit::study::fill_study(*store, fleetfit::study::kExampleStudy, trials);
    fleetfit::study::fill_study(*store, fleetfit::study::several_objectives(), trials);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fill_study: %s\n", error.what());
    return 1;
  }
  return 0;
}
