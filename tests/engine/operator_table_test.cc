// docs/operators.md says what is true: it is made here, from ONNX's own tests and the zoo.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "engine/libraries.h"
#include "engine/plan.h"
#include "fleetfit/engine/calibrate.h"
#include "tests/engine/small_networks.h"
#include "tests/graph/onnx_node_cases.h"
#include "tests/source_dir.h"

namespace fleetfit::engine {
namespace {

namespace fs = std::filesystem;
using namespace graph::onnx_tests;

const fs::path kRoot = source_dir();

/// Who has kernels for an operator, by the type of numbers.
struct Row {
  std::map<std::string, std::set<std::string>> sources;
};
using Table = std::map<std::string, Row>;

constexpr const char* kFloats = "float32";
constexpr const char* kBytes = "8 bits";
constexpr const char* kOthers = "other types";

std::string kind_of_numbers(const Task& task) {
  bool floats = true;
  bool bytes = false;
  const auto look_at = [&](const Operand& operand) {
    if (!operand.present) return;
    floats = floats && (operand.dtype == graph::DType::f32 || operand.constant);
    bytes = bytes || (operand.quantization && graph::size_of(operand.dtype) == 1);
  };
  for (const Operand& operand : task.inputs) look_at(operand);
  for (const Operand& operand : task.outputs) look_at(operand);
  return bytes ? kBytes : floats ? kFloats : kOthers;
}

/// Libraries with a kernel for the task; the interpreter where there is none. Numbered, so that
/// they are listed in this order.
std::set<std::string> sources_of(const Task& task) {
  std::set<std::string> sources;
  if (make_onednn_kernel(task, "")) sources.insert("1 oneDNN");
  if (make_xnnpack_kernel(task)) sources.insert("2 XNNPACK");
  if (make_own_kernel(task)) sources.insert("3 own");
  if (sources.empty()) sources.insert("4 interpreter");
  return sources;
}

void add_operators(const graph::Graph& graph, Table& table) {
  const auto simplified = simplify_for_engine(graph);
  if (!simplified) return;
  const auto plan = make_plan(*simplified, ImageLayout::channels_last, Fusing::nothing, 1);
  if (!plan) return;
  for (const auto& node : graph.nodes) table[std::string(type_name(node.op))];
  for (const auto& step : plan->steps) {
    auto& row = table[std::string(type_name(step.task.node.op))];
    row.sources[kind_of_numbers(step.task)].merge(sources_of(step.task));
  }
}

void add_onnx_tests(Table& table) {
  auto skips = read_skips(kRoot / "tests/data/onnx_node_skips.txt");
  std::ranges::copy(read_skips(kRoot / "tests/data/onnx_engine_skips.txt"),
                    std::back_inserter(skips));
  for (const auto& folder : all_folders()) {
    if (find_skip(skips, folder.filename().string()) != nullptr) continue;
    auto test = read_case(folder);
    if (!test || !Program::prepare(test->graph, {.library = Library::reference})) {
      test = read_case_with_constants(folder);
    }
    if (test) add_operators(test->graph, table);
  }
}

void add_networks(Table& table) {
  for (const auto* name : {"mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5",
                           "squeezenet1_1", "densenet121", "efficientnet_b0", "deit_tiny"}) {
    const auto graph = small_network(name).value();
    add_operators(graph, table);
    add_operators(quantize_on(graph, random_samples(graph, 1)).value(), table);
  }
}

std::string listed(const Row& row, const std::string& kind) {
  const auto found = row.sources.find(kind);
  if (found == row.sources.end()) return "–";
  std::string text;
  for (const auto& source : found->second) text += (text.empty() ? "" : ", ") + source.substr(2);
  return text;
}

std::string table_text(const Table& table) {
  std::string text = "| operator | float32 | 8 bits | other types |\n|---|---|---|---|\n";
  for (const auto& [name, row] : table) {
    if (row.sources.empty()) {
      text += "| " + name + " | free | free | free |\n";
      continue;
    }
    text += "| " + name + " | " + listed(row, kFloats) + " | " + listed(row, kBytes) + " | " +
            listed(row, kOthers) + " |\n";
  }
  return text;
}

/// Reasons of a list, each once; names of operators that are not known are put together.
std::string left_out_text(const fs::path& file) {
  const std::string unknown = " is none of our operators";
  std::set<std::string> operators;
  std::map<std::string, int> reasons;
  for (const auto& skip : read_skips(file)) {
    if (skip.reason.ends_with(unknown)) {
      operators.insert(skip.reason.substr(0, skip.reason.size() - unknown.size()));
    } else {
      ++reasons[skip.reason];
    }
  }
  std::string text;
  for (const auto& [reason, count] : reasons) text += "- " + reason + "\n";
  if (operators.empty()) return text;
  text += "- operators that are not known:";
  for (const auto& name : operators) text += (name == *operators.begin() ? " " : ", ") + name;
  return text + "\n";
}

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The page with each part between "<!-- begin NAME -->" and "<!-- end NAME -->" replaced.
std::string with_part(const std::string& page, const std::string& name, const std::string& text) {
  const std::string begin = "<!-- begin " + name + " -->\n";
  const std::string end = "<!-- end " + name + " -->";
  const auto from = page.find(begin);
  const auto to = page.find(end);
  if (from == std::string::npos || to == std::string::npos) return page + begin + text + end + "\n";
  return page.substr(0, from + begin.size()) + text + page.substr(to);
}

/// The first column of each row alone.
std::string names_alone(const std::string& page) {
  std::string names;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    names += (line.starts_with("| ") ? line.substr(0, line.find('|', 1)) : line) + "\n";
  }
  return names;
}

/// The kernels of the libraries differ from CPU to CPU; the page is of one with these instructions.
bool is_the_pages_cpu() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

TEST(OperatorTable, IsThatOfTheDocumentation) {
  if (!are_installed()) GTEST_SKIP() << "the package libonnx-testdata is not installed";
  Table table;
  add_onnx_tests(table);
  add_networks(table);
  const fs::path file = kRoot / "docs/operators.md";
  const std::string page = read_text(file);
  std::string wanted = with_part(page, "operators", table_text(table));
  wanted = with_part(wanted, "left out", left_out_text(kRoot / "tests/data/onnx_node_skips.txt"));
  wanted = with_part(wanted, "left out by the engine",
                     left_out_text(kRoot / "tests/data/onnx_engine_skips.txt"));
  if (std::getenv("FLEETFIT_WRITE_DOCS") != nullptr) std::ofstream(file) << wanted;
  if (is_the_pages_cpu()) {
    EXPECT_EQ(read_text(file), wanted)
        << "FLEETFIT_WRITE_DOCS=1 engine_onnx_test --gtest_filter='OperatorTable.*' writes it anew";
  } else {
    EXPECT_EQ(names_alone(read_text(file)), names_alone(wanted));
  }
}

}  // namespace
}  // namespace fleetfit::engine
