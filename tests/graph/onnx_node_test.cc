// ONNX's own tests of single operators on the interpreter.

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "fleetfit/graph/evaluate.h"
#include "tests/graph/onnx_node_cases.h"
#include "tests/source_dir.h"

namespace fleetfit::graph::onnx_tests {
namespace {

const std::filesystem::path kSkips =
    std::filesystem::path(source_dir()) / "tests/data/onnx_node_skips.txt";

/// Nothing if the model gives what it is to give, else why not.
Status run_case(const std::filesystem::path& folder) {
  const auto test = read_case(folder);
  if (!test) return tl::unexpected(test.error());
  const auto results = evaluate(test->graph, test->inputs);
  if (!results) return tl::unexpected(results.error());
  return compare(*results, test->expected);
}

class OnnxOperators : public ::testing::TestWithParam<Part> {};

TEST_P(OnnxOperators, GiveThePublishedOutputs) {
  if (!are_installed()) GTEST_SKIP() << "the package libonnx-testdata is not installed";
  const auto skips = read_skips(kSkips);
  int passed = 0;
  std::map<std::string, int> skipped;
  for (const auto& folder : folders(GetParam())) {
    const auto name = folder.filename().string();
    const auto outcome = run_case(folder);
    const auto* skip = find_skip(skips, name);
    if (outcome) {
      ++passed;
      EXPECT_EQ(skip, nullptr) << name << " passes: take it off the list of skips";
    } else if (skip != nullptr) {
      ++skipped[skip->reason];
    } else {
      ADD_FAILURE() << name << ": " << outcome.error().message;
    }
  }
  std::cout << passed << " passed\n";
  for (const auto& [reason, count] : skipped) std::cout << count << " skipped: " << reason << "\n";
}

/// "node_A_b".
std::string name_of(const ::testing::TestParamInfo<Part>& info) {
  std::string name = info.param.folder;
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_" + info.param.first + "_" + info.param.last;
}

INSTANTIATE_TEST_SUITE_P(All, OnnxOperators,
                         ::testing::Values(Part{"node", 'A', 'b'}, Part{"node", 'c', 'c'},
                                           Part{"node", 'd', 'k'}, Part{"node", 'l', 'm'},
                                           Part{"node", 'n', 'q'}, Part{"node", 'r', 'r'},
                                           Part{"node", 's', 's'}, Part{"node", 't', 'z'},
                                           Part{"pytorch-operator", 'A', 'z'},
                                           Part{"pytorch-converted", 'A', 'z'},
                                           Part{"simple", 'A', 'z'}),
                         name_of);

TEST(OnnxOperatorSkips, AllStandForSomeTest) {
  if (!are_installed()) GTEST_SKIP() << "the package libonnx-testdata is not installed";
  const auto tests = all_folders();
  for (const auto& skip : read_skips(kSkips)) {
    EXPECT_FALSE(skip.reason.empty()) << skip.pattern;
    EXPECT_TRUE(std::any_of(tests.begin(), tests.end(), [&](const std::filesystem::path& test) {
      return fnmatch(skip.pattern.c_str(), test.filename().c_str(), 0) == 0;
    })) << skip.pattern;
  }
}

}  // namespace
}  // namespace fleetfit::graph::onnx_tests
