// The small models that the engine's fuzzer starts from.
#include <gtest/gtest.h>

#include <filesystem>

#include "fleetfit/graph/import.h"
#include "tests/engine/compare.h"
#include "tests/source_dir.h"

namespace fleetfit::engine {
namespace {

TEST(FuzzCorpus, GivesWhatTheInterpreterGives) {
  int run = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_dir() + "/fuzz/corpus/engine")) {
    SCOPED_TRACE(entry.path().filename().string());
    const auto model = graph::import_model(entry.path());
    if (!model) continue;  // what is broken belongs there too
    if (!Program::prepare(model->graph, {.choosing = Choosing::fixed})) continue;
    expect_as_evaluated(model->graph);
    ++run;
  }
  EXPECT_GE(run, 6);
}

}  // namespace
}  // namespace fleetfit::engine
