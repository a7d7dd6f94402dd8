#include "tests/graph/onnx_node_cases.h"

#include <fnmatch.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "fleetfit/graph/import.h"
#include "graph/evaluate/values.h"

namespace fleetfit::graph::onnx_tests {
namespace {

namespace fs = std::filesystem;

const fs::path kData = "/usr/share/libonnx-testdata/data";

constexpr double kRelativeTolerance = 1e-3;
constexpr double kAbsoluteTolerance = 1e-5;

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

DType dtype_of(int onnx_type) {
  static const std::map<int, DType> types{
      {onnx::TensorProto::FLOAT, DType::f32},     {onnx::TensorProto::FLOAT16, DType::f16},
      {onnx::TensorProto::BFLOAT16, DType::bf16}, {onnx::TensorProto::DOUBLE, DType::f64},
      {onnx::TensorProto::INT8, DType::i8},       {onnx::TensorProto::UINT8, DType::u8},
      {onnx::TensorProto::INT16, DType::i16},     {onnx::TensorProto::UINT16, DType::u16},
      {onnx::TensorProto::INT32, DType::i32},     {onnx::TensorProto::UINT32, DType::u32},
      {onnx::TensorProto::INT64, DType::i64},     {onnx::TensorProto::UINT64, DType::u64},
      {onnx::TensorProto::BOOL, DType::boolean}};
  const auto found = types.find(onnx_type);
  return found == types.end() ? DType::unknown : found->second;
}

template <class List>
std::vector<double> as_doubles(const List& list) {
  return {list.begin(), list.end()};
}

/// A tensor of a file; read by ONNX's own parser, so that the importer's is not its own judge.
Result<Value> read_tensor(const fs::path& file) {
  onnx::TensorProto tensor;
  if (!tensor.ParseFromString(read_text(file))) {
    return fail(ErrorCode::unsupported, "a test value is no tensor");
  }
  const auto dtype = dtype_of(tensor.data_type());
  if (dtype == DType::unknown) return fail(ErrorCode::unsupported, "a type that has no numbers");
  const Shape shape(tensor.dims().begin(), tensor.dims().end());
  if (tensor.has_raw_data()) {
    const auto& raw = tensor.raw_data();
    return Value{dtype, shape, TensorData::copy(std::span<const char>(raw.data(), raw.size())), {}};
  }
  const interpreter::Form form{dtype, shape};
  if (dtype == DType::f32) return write(form, as_doubles(tensor.float_data()));
  if (dtype == DType::f64) return write(form, as_doubles(tensor.double_data()));
  if (dtype == DType::i64)
    return write(form, Ints(tensor.int64_data().begin(), tensor.int64_data().end()));
  if (dtype == DType::f16 || dtype == DType::bf16) {
    const std::vector<std::uint16_t> bits(tensor.int32_data().begin(), tensor.int32_data().end());
    return Value{dtype, shape, TensorData::copy(bits), {}};
  }
  return write(form, as_doubles(tensor.int32_data()));
}

Result<std::vector<Value>> read_tensors(const fs::path& folder, const std::string& role) {
  std::vector<Value> values;
  for (;;) {
    const auto file = folder / (role + "_" + std::to_string(values.size()) + ".pb");
    if (!fs::exists(file)) return values;
    auto value = read_tensor(file);
    if (!value) return tl::unexpected(value.error());
    values.push_back(*std::move(value));
  }
}

bool close(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= kAbsoluteTolerance + kRelativeTolerance * std::abs(b);
}

/// Fails with one sentence on the first difference.
Status compare_one(const Value& got, const Value& expected) {
  const auto wrong = [](const std::string& what) { return fail(ErrorCode::internal, what); };
  if (got.dtype != expected.dtype) {
    return wrong("type is " + std::string(to_string(got.dtype)) + ", not " +
                 std::string(to_string(expected.dtype)));
  }
  if (got.shape != expected.shape) {
    return wrong("shape is " + to_string(got.shape) + ", not " + to_string(expected.shape));
  }
  if (!is_float(got.dtype)) {
    return got.data == expected.data ? Status{} : wrong("whole numbers differ");
  }
  const auto a = interpreter::read<double>(got);
  const auto b = interpreter::read<double>(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!close(a[i], b[i])) {
      return wrong("element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " +
                   std::to_string(b[i]));
    }
  }
  return {};
}

/// The graph of a model; `unsupported` if it holds an operator that is not known.
Result<Graph> known_graph(const std::string& bytes, const fs::path& folder) {
  auto model = import_onnx(std::as_bytes(std::span(bytes)), folder);
  if (!model) return tl::unexpected(model.error());
  for (const auto& node : model->graph.nodes) {
    if (const auto* unknown = std::get_if<Unknown>(&node.op)) {
      return fail(ErrorCode::unsupported, unknown->type + ": " + unknown->reason);
    }
  }
  return std::move(model->graph);
}

/// The model with all inputs but the first as constants.
std::string with_constant_operands(const fs::path& folder) {
  onnx::ModelProto model;
  model.ParseFromString(read_text(folder / "model.onnx"));
  auto& graph = *model.mutable_graph();
  for (int i = 1; i < graph.input_size(); ++i) {
    auto& constant = *graph.add_initializer();
    const auto file = folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb");
    constant.ParseFromString(read_text(file));
    constant.set_name(graph.input(i).name());
  }
  while (graph.input_size() > 1) graph.mutable_input()->RemoveLast();
  return model.SerializeAsString();
}

/// ONNX writes bfloat16 test values as the uint16 of their bits.
void mark_brain_float(Value& value, DType wanted) {
  if (wanted == DType::bf16 && value.dtype == DType::u16) value.dtype = DType::bf16;
}

/// The model of a test with as many of the test's inputs as it takes.
Result<Case> make_case(const fs::path& folder, const std::string& model) {
  auto inputs = read_tensors(folder / "test_data_set_0", "input");
  auto expected = read_tensors(folder / "test_data_set_0", "output");
  auto graph = known_graph(model, folder);
  if (!graph) return tl::unexpected(graph.error());
  if (!inputs) return tl::unexpected(inputs.error());
  if (!expected) return tl::unexpected(expected.error());
  const auto fed = std::min(inputs->size(), graph->inputs.size());
  inputs->erase(inputs->begin() + static_cast<std::ptrdiff_t>(fed), inputs->end());
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    auto& tensor = graph->tensor(graph->inputs[i]);
    mark_brain_float((*inputs)[i], tensor.dtype);
    tensor.shape = (*inputs)[i].shape;  // some models leave dimensions open
  }
  return Case{*std::move(graph), *std::move(inputs), *std::move(expected)};
}

}  // namespace

bool are_installed() { return fs::exists(kData); }

std::vector<fs::path> folders(const Part& part) {
  const std::string prefix = "test_";
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(kData / part.folder)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !fs::exists(entry.path() / "model.onnx")) continue;
    const char letter = name[prefix.size()];
    if (letter >= part.first && letter <= part.last) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> all_folders() {
  std::vector<fs::path> all;
  for (const auto* folder : {"node", "pytorch-operator", "pytorch-converted", "simple"}) {
    std::ranges::copy(folders({folder, 'A', 'z'}), std::back_inserter(all));
  }
  return all;
}

Result<Case> read_case(const std::filesystem::path& folder) {
  auto fed = make_case(folder, read_text(folder / "model.onnx"));
  if (fed) return fed;
  auto constant = read_case_with_constants(folder);
  return constant ? std::move(constant) : std::move(fed);
}

Result<Case> read_case_with_constants(const std::filesystem::path& folder) {
  return make_case(folder, with_constant_operands(folder));
}

Status compare(const std::vector<Value>& results, const std::vector<Value>& expected) {
  if (results.size() != expected.size()) return fail(ErrorCode::internal, "number of outputs");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    Value wanted = expected[i];
    mark_brain_float(wanted, results[i].dtype);
    if (auto ok = compare_one(results[i], wanted); !ok) return ok;
  }
  return {};
}

std::vector<Skip> read_skips(const fs::path& file) {
  std::vector<Skip> skips;
  std::istringstream lines(read_text(file));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto space = line.find(' ');
    skips.push_back({line.substr(0, space), line.substr(std::min(line.size(), space + 1))});
  }
  return skips;
}

const Skip* find_skip(const std::vector<Skip>& skips, const std::string& name) {
  const auto found = std::find_if(skips.begin(), skips.end(), [&](const Skip& skip) {
    return fnmatch(skip.pattern.c_str(), name.c_str(), 0) == 0;
  });
  return found == skips.end() ? nullptr : &*found;
}

}  // namespace fleetfit::graph::onnx_tests
