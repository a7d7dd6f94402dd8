// ONNX Runtime, started as users start it, against the meaning of operators that graph states.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "fleetfit/core/file.h"
#include "fleetfit/core/process.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/shape_inference.h"
#include "fleetfit/measure/exec_runtime.h"
#include "tests/core/temporary_folder.h"
#include "tests/source_dir.h"

namespace fleetfit::measure {
namespace {

using graph::DType;
using graph::Graph;
using graph::Value;
using ::testing::HasSubstr;

std::vector<double> numbers(const Value& value) {
  Graph scratch;
  const auto id =
      scratch.add_tensor({.dtype = value.dtype, .shape = value.shape, .data = value.data});
  return graph::constant_numbers(scratch, id).value();
}

Graph small_network() {
  graph::NetBuilder net("small", 1);
  const auto image = net.input("image", {1, 3, 16, 16});
  auto x = net.conv_bn(image, {.out = 16, .kernel = 3, .stride = 2}, graph::kRelu);
  x = net.concat({net.conv_bn(x, {.out = 16, .kernel = 3, .groups = 16}, graph::kRelu), x});
  x = net.flatten(net.global_average_pool(net.max_pool(x, {})));
  const auto bias = net.input("bias", {1, 10});
  net.output(net.softmax(net.add(net.linear(x, 10), bias)), "classes");
  net.output(net.linear(x, 2), "box");
  return std::move(net).finish().value();
}

/// A graph that casts one input of each type to float32.
Graph casts_from(const std::vector<DType>& types) {
  Graph graph{.name = "casts"};
  for (const auto type : types) {
    const std::string name(to_string(type));
    const auto x = graph.add_tensor({.name = name, .dtype = type, .shape = graph::Shape{2, 3}});
    const auto y = graph.add_tensor({.name = name + "_as_float"});
    graph.inputs.push_back(x);
    graph.outputs.push_back(y);
    graph.nodes.push_back(
        {.name = "cast_" + name, .op = graph::Cast{DType::f32}, .inputs = {x}, .outputs = {y}});
  }
  if (auto ok = graph::infer_shapes(graph); !ok) ADD_FAILURE() << ok.error().message;
  return graph;
}

/// Random inputs, but whole numbers that are not all zero.
std::vector<Value> telling_inputs(const Graph& graph) {
  auto inputs = graph::random_inputs(graph, 5);
  for (auto& input : inputs) {
    if (!graph::is_integer(input.dtype) || input.quantization) continue;
    std::vector<std::byte> bytes(input.data.size_bytes());
    const auto size = graph::size_of(input.dtype);
    for (std::size_t i = 0; i < bytes.size(); i += size) {
      bytes[i] = static_cast<std::byte>(37 * (i / size) + 1);
    }
    input.data = graph::TensorData::own(std::move(bytes));
  }
  return inputs;
}

class OnnxRuntime : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto command = onnxruntime_command();
    if (!command) GTEST_SKIP() << command.error().message;
    auto runtime = start_exec_runtime({.command = *command});
    ASSERT_TRUE(runtime) << runtime.error().message;
    runtime_ = std::move(*runtime);
  }

  std::filesystem::path written(const Graph& graph) const {
    const auto file = folder_.path() / "model.onnx";
    const auto ok = graph::export_onnx_file(graph, file);
    if (!ok) ADD_FAILURE() << ok.error().message;
    return file;
  }

  /// Loads the file and holds its results against the graph's.
  void expect_same(const Graph& graph, const std::filesystem::path& file, double tolerance) {
    const auto loaded = runtime_->load(file, {});
    ASSERT_TRUE(loaded) << loaded.error().message;
    const auto inputs = telling_inputs(graph);
    std::vector<NamedValue> named;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      named.push_back({graph.tensor(graph.inputs[i]).name, inputs[i]});
    }
    const auto expected = graph::evaluate(graph, inputs);
    ASSERT_TRUE(expected) << expected.error().message;
    const auto actual = runtime_->compute(named);
    ASSERT_TRUE(actual) << actual.error().message;
    ASSERT_EQ(actual->size(), expected->size());
    for (std::size_t o = 0; o < expected->size(); ++o) {
      EXPECT_EQ((*actual)[o].name, graph.tensor(graph.outputs[o]).name);
      EXPECT_EQ((*actual)[o].value.shape, (*expected)[o].shape);
      EXPECT_EQ((*actual)[o].value.dtype, (*expected)[o].dtype);
      EXPECT_TRUE(std::ranges::any_of(numbers((*expected)[o]), [](double x) { return x != 0; }));
      EXPECT_THAT(numbers((*actual)[o].value),
                  ::testing::Pointwise(::testing::DoubleNear(tolerance), numbers((*expected)[o])));
    }
  }

  core::TemporaryFolder folder_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(OnnxRuntime, SaysWhoItIs) {
  EXPECT_EQ(runtime_->info().value(),
            (RuntimeInfo{"onnxruntime", "1.30.0", "onnxruntime-node 1.30.0 cpu"}));
}

TEST_F(OnnxRuntime, ComputesWhatTheGraphMeans) {
  const auto graph = small_network();
  expect_same(graph, written(graph), 1e-5);
}

TEST_F(OnnxRuntime, ComputesWhatAQuantizedGraphMeans) {
  const std::filesystem::path file = source_dir() + "/fuzz/corpus/onnx/depthwise_int8.onnx";
  const auto model = graph::import_model(file);
  ASSERT_TRUE(model) << model.error().message;
  expect_same(model->graph, file, 1);  // roundings may fall on neighbouring steps
}

TEST_F(OnnxRuntime, TakesInputsOfEveryType) {
  const auto graph =
      casts_from({DType::f16, DType::f32, DType::f64, DType::i8, DType::u8, DType::i16, DType::u16,
                  DType::i32, DType::u32, DType::i64, DType::u64, DType::boolean});
  const auto file = written(graph);
  expect_same(graph, file, 0);
  EXPECT_TRUE(runtime_->run(1, false));  // on the values that it makes itself
}

TEST_F(OnnxRuntime, TellsTheTimesOfRunsAndOperators) {
  const auto file = written(small_network());
  ASSERT_TRUE(runtime_->load(file, {.threads = 2}));
  const auto plain = runtime_->run(4, false);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->ms.size(), 4U);
  EXPECT_TRUE(plain->operators.empty());
  EXPECT_GT(plain->peak_memory_bytes, 10 << 20);

  const auto profiled = runtime_->run(3, true);
  ASSERT_TRUE(profiled) << profiled.error().message;
  EXPECT_EQ(profiled->ms.size(), 3U);
  std::set<std::string> nodes;
  const auto model = graph::import_model(file).value();
  for (const auto& node : model.graph.nodes) nodes.insert(node.name);
  std::multiset<std::string> types;
  for (const auto& one : profiled->operators) {
    types.insert(one.type);
    EXPECT_EQ(one.kernel, one.type + "/CPUExecutionProvider");
    EXPECT_GE(one.ms, 0);
    // It moves channels into blocks and back by nodes of its own.
    if (!one.type.starts_with("Reorder")) {
      EXPECT_TRUE(nodes.contains(one.name)) << one.name;
    }
  }
  EXPECT_EQ(types.count("Conv"), 2U);
  EXPECT_EQ(types.count("Softmax"), 1U);
}

TEST_F(OnnxRuntime, NamesWhatItCannotLoad) {
  EXPECT_EQ(runtime_->load("/no/such.onnx", {}).error().code, ErrorCode::not_found);
  EXPECT_EQ(runtime_->load(folder_.file("broken.onnx", "nonsense"), {}).error().code,
            ErrorCode::invalid_input);

  auto open = small_network();
  open.tensor(open.inputs[0]).symbols = {"N", "", "height", ""};
  const auto error = runtime_->load(written(open), {}).error();
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.message, HasSubstr("input image: dimension 2 (height) is open"));

  EXPECT_EQ(runtime_->run(1, false).error().code, ErrorCode::invalid_input);
  EXPECT_TRUE(runtime_->load(written(small_network()), {}));
}

TEST_F(OnnxRuntime, NamesInputsThatAreMissingOrOfNoUse) {
  const auto graph = small_network();
  ASSERT_TRUE(runtime_->load(written(graph), {}));
  const auto inputs = graph::random_inputs(graph, 1);
  std::vector<NamedValue> named = {{"image", inputs[0]}};
  const auto missing = runtime_->compute(named).error();
  EXPECT_EQ(missing.code, ErrorCode::invalid_input);
  EXPECT_THAT(missing.message, HasSubstr("input bias is missing"));
  named.push_back({"bias", inputs[1]});
  named.push_back({"odd", inputs[1]});
  EXPECT_THAT(runtime_->compute(named).error().message, HasSubstr("the model has no input odd"));
}

TEST_F(OnnxRuntime, SurvivesWhatIsNoRequest) {
  using namespace std::chrono_literals;
  auto process = core::Process::start(onnxruntime_command().value()).value();
  const std::vector<std::string> lines = {"",
                                          "{",
                                          "null",
                                          "[1]",
                                          R"({"op":"info"})",
                                          R"({"id":0.5,"op":"info"})",
                                          "\xff",
                                          std::string(3'000'000, 'x')};
  for (const auto& line : lines) ASSERT_TRUE(process.write(line + "\n", 60s));
  ASSERT_TRUE(
      process.write("{\"id\":3,\"op\":\"constructor\"}\n{\"id\":4,\"op\":\"info\"}\n", 60s));
  for (const auto& line : lines) {
    EXPECT_THAT(process.read_line(60s).value().value(),
                ::testing::StartsWith(R"({"id":null,"ok":false,"error":{"code":"invalid_input")"))
        << line.substr(0, 100);
  }
  EXPECT_THAT(process.read_line(60s).value().value(), HasSubstr("there is no op 'constructor'"));
  EXPECT_THAT(process.read_line(60s).value().value(), HasSubstr(R"({"id":4,"ok":true)"));
  process.close_stdin();
  EXPECT_EQ(process.wait(60s), core::ExitStatus{});
}

/// The command when the runtimes are looked for in this folder.
Result<std::vector<std::string>> command_with(const std::filesystem::path& runtimes) {
  const char* before = std::getenv("FLEETFIT_RUNTIMES");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("FLEETFIT_RUNTIMES", runtimes.c_str(), 1);
  auto command = onnxruntime_command();
  if (before != nullptr) {
    ::setenv("FLEETFIT_RUNTIMES", kept.c_str(), 1);
  } else {
    ::unsetenv("FLEETFIT_RUNTIMES");
  }
  return command;
}

TEST(OnnxRuntimeCommand, SaysHowToInstallIt) {
  const core::TemporaryFolder empty;
  const auto command = command_with(empty.path());
  EXPECT_EQ(command.error().code, ErrorCode::not_found);
  EXPECT_THAT(command.error().message, HasSubstr("tools/install-runtime onnxruntime"));
  EXPECT_THAT(command.error().message, HasSubstr(empty.path().string()));
}

TEST(OnnxRuntimeCommand, SaysWhatIsMissingWhereOnlyTheDriverIsInstalled) {
  const core::TemporaryFolder runtimes;
  const auto folder = runtimes.path() / "onnxruntime";
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(core::write_file(folder / "onnxruntime_runtime.mjs", ""));
  const auto command = command_with(runtimes.path());
  EXPECT_EQ(command.error().code, ErrorCode::not_found);
  EXPECT_THAT(command.error().message, HasSubstr("npm ci --ignore-scripts"));
  EXPECT_THAT(command.error().message, HasSubstr(folder.string()));
}

}  // namespace
}  // namespace fleetfit::measure
