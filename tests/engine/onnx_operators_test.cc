// ONNX's own tests of single operators on the engine: what the interpreter passes, it passes.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "tests/engine/compare.h"
#include "tests/graph/onnx_node_cases.h"
#include "tests/source_dir.h"

namespace fleetfit::engine {
namespace {

namespace fs = std::filesystem;
using namespace graph::onnx_tests;

const fs::path kData = fs::path(source_dir()) / "tests/data";

/// What neither the interpreter nor the engine can do.
std::vector<Skip> not_interpreted() { return read_skips(kData / "onnx_node_skips.txt"); }

/// What the interpreter can do and the engine cannot.
std::vector<Skip> not_on_engine() { return read_skips(kData / "onnx_engine_skips.txt"); }

/// Nothing if the model gives what it is to give, else why not.
Status run_case(const Result<Case>& test, const EngineOptions& options) {
  if (!test) return tl::unexpected(test.error());
  const auto results = run_on_engine(test->graph, test->inputs, options);
  if (!results) return tl::unexpected(results.error());
  return compare(*results, test->expected);
}

/// As the test is, or, where shapes depend on what is fed, with that as constants.
Status run_folder(const fs::path& folder, const EngineOptions& options) {
  const auto fed = run_case(read_case(folder), options);
  if (fed || fed.error().code != ErrorCode::unsupported) return fed;
  return run_case(read_case_with_constants(folder), options);
}

class OnnxOnEngine : public testing::TestWithParam<Part> {
 protected:
  static void check(const EngineOptions& options) {
    if (!are_installed()) GTEST_SKIP() << "the package libonnx-testdata is not installed";
    const auto interpreter_skips = not_interpreted();
    const auto skips = not_on_engine();
    int passed = 0;
    for (const auto& folder : folders(GetParam())) {
      const auto name = folder.filename().string();
      if (find_skip(interpreter_skips, name) != nullptr) continue;
      const auto outcome = run_folder(folder, options);
      const auto* skip = find_skip(skips, name);
      if (outcome) {
        ++passed;
        EXPECT_EQ(skip, nullptr) << name << " passes: take it off the list of skips";
      } else {
        EXPECT_NE(skip, nullptr) << name << ": " << outcome.error().message;
      }
    }
    EXPECT_GT(passed, 0);
    RecordProperty("passed", passed);
  }
};

TEST_P(OnnxOnEngine, GivesThePublishedOutputs) { check({.choosing = Choosing::fixed}); }

TEST_P(OnnxOnEngine, GivesThePublishedOutputsWithMeasuredChoices) {
  check({.choosing = Choosing::measured});
}

TEST_P(OnnxOnEngine, GivesThePublishedOutputsWithXnnpack) {
  check({.library = Library::xnnpack, .choosing = Choosing::fixed});
}

TEST_P(OnnxOnEngine, GivesThePublishedOutputsWithTheInterpreter) {
  check({.library = Library::reference, .choosing = Choosing::fixed});
}

/// "node_A_d".
std::string name_of(const testing::TestParamInfo<Part>& info) {
  std::string name = info.param.folder;
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_" + info.param.first + "_" + info.param.last;
}

INSTANTIATE_TEST_SUITE_P(All, OnnxOnEngine,
                         testing::Values(Part{"node", 'A', 'k'}, Part{"node", 'l', 'q'},
                                         Part{"node", 'r', 'z'}, Part{"pytorch-operator", 'A', 'z'},
                                         Part{"pytorch-converted", 'A', 'z'},
                                         Part{"simple", 'A', 'z'}),
                         name_of);

TEST(OnnxOnEngineSkips, AllStandForATestThatTheInterpreterPasses) {
  if (!are_installed()) GTEST_SKIP() << "the package libonnx-testdata is not installed";
  const auto tests = all_folders();
  const auto interpreter_skips = not_interpreted();
  for (const auto& skip : not_on_engine()) {
    EXPECT_FALSE(skip.reason.empty()) << skip.pattern;
    EXPECT_TRUE(std::ranges::any_of(tests, [&](const fs::path& test) {
      const std::string name = test.filename().string();
      return find_skip(std::vector{skip}, name) != nullptr &&
             find_skip(interpreter_skips, name) == nullptr;
    })) << skip.pattern;
  }
}

}  // namespace
}  // namespace fleetfit::engine
