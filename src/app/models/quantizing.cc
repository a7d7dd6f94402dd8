#include "fleetfit/app/quantizing.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "app/models/model_files.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/engine/calibrate.h"
#include "fleetfit/engine/program.h"
#include "fleetfit/graph/export.h"

namespace fleetfit::app {
namespace {

using graph::Graph;

constexpr std::string_view kRandom = "random";

Result<graph::RangeMethod> parse_method(const std::string& method) {
  if (method == "min-max") return graph::RangeMethod::min_max;
  if (method == "percentile") return graph::RangeMethod::percentile;
  return fail(ErrorCode::invalid_input,
              fmt::format("method: \"{}\" is neither min-max nor percentile", method));
}

/// Images of a data set in a random order, as inputs of a model.
class ImageInputs {
 public:
  static Result<ImageInputs> open(const QuantizeRequest& request, data::Split split,
                                  std::int64_t most, const Graph& graph) {
    FLEETFIT_ASSIGN(auto images, core::within(request.in.string(), image_preprocessing(graph)));
    images.mean = request.mean;
    images.stddev = request.stddev;
    FLEETFIT_ASSIGN(auto dataset,
                    data::open_dataset(request.calibrate, split, {.seed = request.seed}));
    const auto batch = static_cast<std::size_t>((*graph.tensor(graph.inputs[0]).shape)[0]);
    const std::size_t count = std::min(static_cast<std::size_t>(most), dataset->size());
    auto chosen = core::Random(request.seed)
                      .split(data::to_string(split))
                      .sample(dataset->size(), count / batch * batch);
    if (chosen.empty()) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{} has fewer images than a batch of {}", request.calibrate, batch));
    }
    return ImageInputs(std::move(dataset), std::move(images), {chosen.begin(), chosen.end()},
                       batch);
  }

  std::size_t classes() const { return dataset_->classes().size(); }
  std::int64_t images() const { return std::ssize(chosen_); }

  /// The next batch; nothing after the last.
  Result<std::optional<data::Batch>> next() {
    if (position_ == chosen_.size()) return std::nullopt;
    const auto indices = std::span(chosen_).subspan(position_, batch_);
    position_ += batch_;
    return data::make_batch(*dataset_, indices, images_).map([](data::Batch batch) {
      return std::optional(std::move(batch));
    });
  }

 private:
  ImageInputs(std::unique_ptr<data::Dataset> dataset, data::Preprocessing images,
              std::vector<std::size_t> chosen, std::size_t batch)
      : dataset_(std::move(dataset)),
        images_(std::move(images)),
        chosen_(std::move(chosen)),
        batch_(batch) {}

  std::unique_ptr<data::Dataset> dataset_;
  data::Preprocessing images_;
  std::vector<std::size_t> chosen_;
  std::size_t batch_;
  std::size_t position_ = 0;
};

graph::Value as_value(const data::Batch& batch) {
  return {.dtype = graph::DType::f32,
          .shape = batch.shape,
          .data = graph::TensorData::copy(batch.values),
          .quantization = {}};
}

struct Calibrated {
  Graph graph;
  std::int64_t samples = 0;
};

Result<Calibrated> calibrate(const Graph& graph, const QuantizeRequest& request,
                             core::ProgressTask& task) {
  FLEETFIT_ASSIGN(const auto method, parse_method(request.method));
  const engine::CalibrationOptions options{.ranges = {.method = method},
                                           .threads = request.threads};
  std::int64_t samples = request.samples;
  Result<Graph> quantized = Graph{};
  if (request.calibrate == kRandom) {
    quantized = engine::quantize_on(graph, engine::random_samples(graph, static_cast<int>(samples)),
                                    options);
  } else {
    FLEETFIT_ASSIGN(auto images,
                    ImageInputs::open(request, data::Split::train, request.samples, graph));
    samples = images.images();
    const engine::Samples next = [&]() -> Result<std::optional<std::vector<graph::Value>>> {
      FLEETFIT_ASSIGN(auto batch, images.next());
      if (!batch) return std::nullopt;
      task.advance(batch->labels.size());
      return std::vector<graph::Value>{as_value(*batch)};
    };
    quantized = engine::quantize_on(graph, next, options);
  }
  if (!quantized) return core::within(request.in.string(), std::move(quantized.error()));
  return Calibrated{*std::move(quantized), samples};
}

/// How many of a batch the scores tell rightly.
std::int64_t hits(std::span<const float> scores, const std::vector<std::int64_t>& labels) {
  const std::size_t classes = scores.size() / labels.size();
  std::int64_t right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto of_image = scores.subspan(i * classes, classes);
    const auto best = std::ranges::max_element(of_image) - of_image.begin();
    right += best == labels[i] ? 1 : 0;
  }
  return right;
}

Result<double> accuracy_of(const Graph& graph, const QuantizeRequest& request, ImageInputs images,
                           core::ProgressTask& task) {
  FLEETFIT_ASSIGN(
      auto program,
      core::within(request.in.string(),
                   engine::Program::prepare(
                       graph, {.threads = request.threads, .choosing = engine::Choosing::fixed})));
  std::int64_t right = 0;
  while (true) {
    FLEETFIT_ASSIGN(const auto batch, images.next());
    if (!batch) return static_cast<double>(right) / static_cast<double>(images.images());
    FLEETFIT_TRY(program.set_input(0, as_value(*batch)));
    FLEETFIT_TRY(program.run());
    const auto bytes = program.output(0);
    right += hits({reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)},
                  batch->labels);
    task.advance(batch->labels.size());
  }
}

/// Why outputs are no scores of the data's classes; "" if they are.
std::string why_no_scores(const Graph& graph, std::size_t classes) {
  const auto& output = graph.tensor(graph.outputs[0]);
  const auto batch = (*graph.tensor(graph.inputs[0]).shape)[0];
  if (output.dtype != graph::DType::f32 || !output.shape) return "the first output is not float32";
  const auto scores = graph::elements(*output.shape) / batch;
  if (scores == static_cast<std::int64_t>(classes)) return "";
  return fmt::format("the model has {} scores, the data {} classes", scores, classes);
}

Status add_accuracy(const Graph& before, const Graph& after, const QuantizeRequest& request,
                    core::ProgressTask& task, QuantizeSummary& summary) {
  if (request.calibrate == kRandom) {
    summary.why_no_accuracy = "random inputs have no classes";
    return {};
  }
  const auto open = [&] {
    return ImageInputs::open(request, data::Split::test, request.test_images, before);
  };
  FLEETFIT_ASSIGN(auto images, open());
  summary.why_no_accuracy = why_no_scores(before, images.classes());
  if (!summary.why_no_accuracy.empty()) return {};
  QuantizedAccuracy accuracy{.images = images.images()};
  FLEETFIT_ASSIGN(const auto of_float, accuracy_of(before, request, std::move(images), task));
  FLEETFIT_ASSIGN(auto again, open());
  FLEETFIT_ASSIGN(const auto of_int8, accuracy_of(after, request, std::move(again), task));
  accuracy.float_share = of_float;
  accuracy.int8_share = of_int8;
  summary.accuracy = accuracy;
  return {};
}

}  // namespace

Result<QuantizeSummary> quantize_model(const QuantizeRequest& request, core::Progress& progress) {
  if (request.samples < 1 || request.test_images < 1) {
    return fail(ErrorCode::invalid_input, "samples: at least one is needed");
  }
  FLEETFIT_ASSIGN(const auto model,
                  graph::import_model(request.in, import_options(request.options)));
  core::ProgressTask task(progress, {.name = "quantize", .unit = "images"});
  FLEETFIT_ASSIGN(const auto quantized, calibrate(model.graph, request, task));
  if (auto ok = graph::export_onnx_file(quantized.graph, request.out); !ok) {
    return core::within(request.in.string(), ok.error());
  }
  QuantizeSummary summary{.file = {.output = request.out.string(),
                                   .ops_before = model.graph.nodes.size(),
                                   .ops_after = quantized.graph.nodes.size()},
                          .samples = quantized.samples};
  std::error_code ignored;
  summary.file.bytes = std::filesystem::file_size(request.out, ignored);
  if (auto ok = add_accuracy(model.graph, quantized.graph, request, task, summary); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  return summary;
}

core::Fields fields_of(const QuantizedAccuracy*) {
  using Accuracy = QuantizedAccuracy;
  static constexpr core::Field kAll[] = {
      core::field<&Accuracy::float_share>("float"), core::field<&Accuracy::int8_share>("int8"),
      core::computed("drop", [](const Accuracy& a) { return a.float_share - a.int8_share; }),
      FLEETFIT_MEMBERS(Accuracy, images)};
  return {.all = kAll};
}

core::Fields fields_of(const QuantizeSummary*) {
  using Summary = QuantizeSummary;
  static constexpr core::Field kAll[] = {
      core::field<&Summary::file>("file").inlined(),
      core::computed("precision", [](const Summary&) { return "int8"; }),
      core::field<&Summary::samples>("calibration_samples"), FLEETFIT_MEMBERS(Summary, accuracy),
      core::field<&Summary::why_no_accuracy>("why_no_accuracy").omit_default()};
  return {.all = kAll};
}

}  // namespace fleetfit::app
