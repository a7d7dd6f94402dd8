// ONNX's own tests of single operators (Debian's libonnx-testdata): each is a model with inputs and
// the outputs that they are to give.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph::onnx_tests {

/// Whether the package is installed.
bool are_installed();

/// Tests of a folder whose names start with a letter of [first, last].
struct Part {
  const char* folder;
  char first;
  char last;
};

/// The folders of the tests, sorted.
std::vector<std::filesystem::path> folders(const Part& part);

/// All of them.
std::vector<std::filesystem::path> all_folders();

/// A test's model and what goes in and is to come out.
struct Case {
  Graph graph;
  std::vector<Value> inputs;
  std::vector<Value> expected;
};

/// Reads a test; input tensors have the shapes of the inputs. `unsupported` if the model holds an
/// operator that is not known.
Result<Case> read_case(const std::filesystem::path& folder);

/// The same with all inputs but the first as constants. The tests feed even axes and bounds, which
/// real networks hold as constants.
Result<Case> read_case_with_constants(const std::filesystem::path& folder);

/// Nothing if the results are the expected ones, else one sentence on the first difference.
Status compare(const std::vector<Value>& results, const std::vector<Value>& expected);

/// A line of a list of tests that are known not to run: a pattern of names and why.
struct Skip {
  std::string pattern;
  std::string reason;
};

/// Reads a list; lines that are empty or start with # are left out.
std::vector<Skip> read_skips(const std::filesystem::path& file);

/// The first line that the test's name fits, or null.
const Skip* find_skip(const std::vector<Skip>& skips, const std::string& name);

}  // namespace fleetfit::graph::onnx_tests
