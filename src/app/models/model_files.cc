#include "app/models/model_files.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "app/devices/opened_device.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/engine/calibrate.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::app {
namespace {

namespace fs = std::filesystem;

constexpr int kRandomSamples = 2;
constexpr std::int64_t kOldestOpset = 7;  // that runtimes are known to read

/// The same network without names for open dimensions, so that its file has the extents.
graph::Graph with_extents(graph::Graph graph) {
  for (const auto id : graph.inputs) graph.tensor(id).symbols.clear();
  for (const auto id : graph.outputs) graph.tensor(id).symbols.clear();
  return graph;
}

/// Whether a dimension is open that other runtimes do not take for a batch of one.
bool leaves_size_open(const graph::Graph& graph) {
  return std::ranges::any_of(graph.inputs, [&](graph::TensorId id) {
    const auto& symbols = graph.tensor(id).symbols;
    return std::any_of(symbols.begin() + std::min<std::ptrdiff_t>(1, std::ssize(symbols)),
                       symbols.end(), [](const std::string& symbol) { return !symbol.empty(); });
  });
}

Result<fs::path> write_onnx(const graph::Graph& graph, fs::path file) {
  if (auto ok = graph::export_onnx_file(graph, file, core::Durability::scratch); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  return file;
}

Result<std::string> hash_of(const fs::path& file) {
  FLEETFIT_ASSIGN(const auto mapped, core::MappedFile::open(file));
  const auto bytes = mapped.bytes();
  return core::sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

graph::ImportOptions import_options(const ModelOptions& options) {
  return {.dimensions = options.dimensions, .batch = options.batch};
}

Result<ModelFiles> ModelFiles::open(const fs::path& file, const ModelOptions& options,
                                    int threads) {
  FLEETFIT_ASSIGN(auto model, graph::import_model(file, import_options(options)));
  FLEETFIT_ASSIGN(auto scratch, core::ScratchFolder::create());
  ModelFiles files(file, std::move(model), std::move(scratch));
  files.extents_given_ = !options.dimensions.empty() || options.batch != 1;
  files.threads_ = threads;
  return files;
}

Result<ModelFiles> ModelFiles::of_graph(Made made, int threads) {
  FLEETFIT_ASSIGN(auto scratch, core::ScratchFolder::create());
  graph::ImportedModel model{.graph = std::move(made.graph), .format = graph::ModelFormat::onnx};
  ModelFiles files(made.name, std::move(model), std::move(scratch));
  files.extents_given_ = true;
  files.threads_ = threads;
  files.origin_ = std::move(made.origin);
  files.hash_ = std::move(made.hash);
  return files;
}

Result<std::string> ModelFiles::hash() {
  if (origin_) return hash_;
  if (!extents_given_) return hash_of(source_);
  return with_fixed_extents().and_then(hash_of);
}

std::uintmax_t ModelFiles::bytes() const {
  std::error_code error;
  const auto bytes = fs::file_size(source_, error);
  return error ? 0 : bytes;
}

std::string ModelFiles::origin() const {
  return origin_ ? *origin_ : fs::absolute(source_).string();
}

bool ModelFiles::reads_original(const measure::Device& device) const {
  if (extents_given_) return false;
  if (is_engine(device.runtime)) return true;
  if (leaves_size_open(model_.graph)) return false;
  if (model_.format == graph::ModelFormat::onnx) return model_.opset >= kOldestOpset;
  return model_.format == graph::ModelFormat::tflite && device.runtime != "onnxruntime";
}

Result<RuntimeFile> ModelFiles::for_device(const measure::Device& device) {
  if (device.precision == measure::Precision::int8 && !graph::is_quantized(model_.graph)) {
    return quantized().map([](const fs::path& path) {
      return RuntimeFile{path,
                         "quantized after training with the ranges of random inputs: right for its "
                         "speed, not for its accuracy"};
    });
  }
  if (reads_original(device)) return RuntimeFile{source_};
  return with_fixed_extents().map([](const fs::path& path) { return RuntimeFile{path}; });
}

Result<fs::path> ModelFiles::with_fixed_extents() {
  const std::string name = source_.stem().string() + ".onnx";
  const auto made = made_.find(name);
  if (made != made_.end()) return made->second;
  return made_.emplace(name, write_onnx(with_extents(model_.graph), scratch_.path() / name))
      .first->second;
}

Result<fs::path> ModelFiles::quantized() {
  const std::string name = source_.stem().string() + "-int8.onnx";
  const auto made = made_.find(name);
  if (made != made_.end()) return made->second;
  return made_.emplace(name, make_quantized(scratch_.path() / name)).first->second;
}

Result<fs::path> ModelFiles::make_quantized(const fs::path& file) const {
  FLEETFIT_ASSIGN(
      const auto graph,
      core::within(
          "it cannot be quantized",
          engine::quantize_on(model_.graph, engine::random_samples(model_.graph, kRandomSamples),
                              {.threads = threads_})));
  return write_onnx(with_extents(graph), file);
}

namespace {

bool is_channels(std::int64_t extent) { return extent == 1 || extent == 3; }

tl::unexpected<Error> refuse(const std::string& what) {
  return fail(ErrorCode::invalid_input, fmt::format("{}, so images cannot be its input", what));
}

}  // namespace

Result<data::Preprocessing> image_preprocessing(const graph::Graph& graph) {
  if (graph.inputs.size() != 1) return refuse(fmt::format("it has {} inputs", graph.inputs.size()));
  const auto& input = graph.tensor(graph.inputs[0]);
  if (input.dtype != graph::DType::f32) return refuse("its input is not float32");
  if (!input.shape || input.shape->size() != 4) return refuse("its input has not four dimensions");
  const auto& shape = *input.shape;
  if (is_channels(shape[1]))
    return data::Preprocessing{.height = shape[2], .width = shape[3], .channels = shape[1]};
  if (is_channels(shape[3]))
    return data::Preprocessing{.height = shape[1],
                               .width = shape[2],
                               .channels = shape[3],
                               .order = data::PixelOrder::nhwc};
  return refuse(fmt::format("its input {} has neither 1 nor 3 channels", graph::to_string(shape)));
}

}  // namespace fleetfit::app
