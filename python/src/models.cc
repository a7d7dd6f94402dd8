#include <nlohmann/json.hpp>

#include "binding.h"
#include "fleetfit/app/few_shot.h"
#include "fleetfit/app/kernels.h"
#include "fleetfit/app/models.h"
#include "fleetfit/app/predicting.h"
#include "fleetfit/app/predicting_designs.h"
#include "fleetfit/app/transferring.h"
#include "fleetfit/core/clock.h"

namespace fleetfit::python {
namespace {

using Path = std::filesystem::path;
using Paths = std::vector<Path>;
using Names = std::vector<std::string>;
using Dimensions = std::map<std::string, std::int64_t>;

/// The document of a short use case.
template <class Work>
py::object answer(Work&& work) {
  return document(value_of(unlocked(std::forward<Work>(work))));
}

/// The document of a long one.
template <class Work>
py::object long_answer(Work&& work) {
  return document(interruptible(std::forward<Work>(work)));
}

void add_files(py::module_& module) {
  module.def(
      "inspect",
      [](const Path& model, std::int64_t batch, const Dimensions& dimensions) {
        return answer(
            [&] { return app::inspect_model(model, {.dimensions = dimensions, .batch = batch}); });
      },
      py::arg("model"), py::arg("batch") = 1, py::arg("dimensions") = Dimensions(),
      "Operators of a model file with what each costs, totals, and what is unsupported.");
  module.def(
      "convert",
      [](const Path& model, const Path& output, bool simplify) {
        return answer([&] { return app::convert_model(model, output, {.simplify = simplify}); });
      },
      py::arg("model"), py::arg("output"), py::arg("simplify") = false,
      "Writes a model of any format as ONNX.");
  module.def(
      "kernels",
      [](const Path& model, const std::string& rules, const std::string& target) {
        return answer(
            [&] { return app::list_kernels({.model = model, .rules = rules, .target = target}); });
      },
      py::arg("model"), py::arg("rules") = "engine", py::arg("target") = "",
      "Kernels that a framework will run for a model, each with the operators in it.");
  module.def(
      "zoo",
      [](int threads) { return answer([&] { return app::list_zoo(threads_or_all(threads)); }); },
      py::arg("threads") = 0, "Every known network with its size.");
  module.def(
      "write_zoo_network",
      [](const std::string& name, const Path& output, double width,
         std::optional<std::int64_t> classes, std::optional<std::int64_t> image,
         std::optional<std::int64_t> channels, std::uint64_t seed) {
        return answer([&] {
          return app::write_zoo_network(name, output,
                                        {.width = width,
                                         .classes = classes,
                                         .image = image,
                                         .channels = channels,
                                         .seed = seed});
        });
      },
      py::arg("name"), py::arg("output"), py::arg("width") = 1.0, py::arg("classes") = py::none(),
      py::arg("image") = py::none(), py::arg("channels") = py::none(), py::arg("seed") = 1,
      "Writes a known network, with random weights, as ONNX.");
}

void add_predicting(py::module_& module) {
  module.def(
      "predict",
      [](const Path& predictor, const Paths& models, std::int64_t batch) {
        return answer([&] {
          return app::predict_models(
              {.predictor = predictor, .models = models, .options = {.batch = batch}});
        });
      },
      py::arg("predictor"), py::arg("models"), py::arg("batch") = 1,
      "How long models take on a predictor's device, without the device.");
}

void add_tables(py::module_& module) {
  module.def(
      "correlate",
      [](const Path& table, const std::string& space, const Names& devices) {
        const app::CorrelationRequest request{.table = {table, space, devices}};
        const auto report = value_of(unlocked([&] { return app::correlate_devices(request); }));
        auto answer = document(report).cast<py::dict>();
        answer["srcc"] = py::module_::import("numpy").attr("array")(answer["srcc"]);
        return answer;
      },
      py::arg("table"), py::arg("space"), py::arg("devices") = Names(),
      "Rank correlation of devices by pairs; `srcc` is a matrix.");
  module.def(
      "select_proxy",
      [](const Path& table, const std::string& space, const Names& devices,
         std::optional<std::size_t> samples, double threshold, std::uint64_t seed) {
        return answer([&] {
          return app::select_proxy({.table = {table, space, devices},
                                    .samples = samples,
                                    .threshold = threshold,
                                    .seed = seed});
        });
      },
      py::arg("table"), py::arg("space"), py::arg("devices") = Names(),
      py::arg("samples") = py::none(), py::arg("threshold") = 0.9, py::arg("seed") = 1,
      "The device that the others agree with most, and how many proxies a fleet takes.");
  module.def(
      "adapt_proxy",
      [](const Path& table, const std::string& space, const std::string& proxy,
         const std::string& target, std::size_t samples, std::size_t validation, std::size_t trials,
         std::optional<Path> output, std::uint64_t seed, int threads) {
        app::AdaptProxyRequest request{.table = table,
                                       .space = space,
                                       .proxy = proxy,
                                       .target = target,
                                       .samples = samples,
                                       .validation = validation,
                                       .trials = trials,
                                       .output = std::move(output),
                                       .seed = seed,
                                       .threads = threads_or_all(threads)};
        return long_answer([&](const std::stop_token&) { return app::adapt_proxy(request); });
      },
      py::arg("table"), py::arg("space"), py::arg("proxy"), py::arg("target"), py::arg("samples"),
      py::arg("validation") = 20, py::arg("trials") = 1, py::arg("output") = py::none(),
      py::arg("seed") = 1, py::arg("threads") = 0,
      "Bends a proxy's column to a target's by some of its cells, and compares with all of them.");
  module.def(
      "few_shot",
      [](const Path& table, const std::string& space, const Names& references,
         const std::string& target, std::size_t samples, std::size_t trials, std::uint64_t seed,
         int threads) {
        const app::FewShotRequest request{.table = table,
                                          .space = space,
                                          .references = references,
                                          .target = target,
                                          .samples = samples,
                                          .trials = trials,
                                          .seed = seed,
                                          .threads = threads_or_all(threads)};
        const auto report =
            interruptible([&](const std::stop_token&) { return app::transfer_few_shot(request); });
        auto answer = document(report).cast<py::dict>();
        std::vector<double> ms;
        for (const auto& prediction : report.predictions) ms.push_back(prediction.ms);
        answer["designs"] = designs_array(report.designs);
        answer["latency_ms"] = numbers_array(ms);
        return answer;
      },
      py::arg("table"), py::arg("space"), py::arg("references"), py::arg("target"),
      py::arg("samples") = 10, py::arg("trials") = 1, py::arg("seed") = 1, py::arg("threads") = 0,
      "Predicts a column of a table from a few of its cells and the columns of known devices; "
      "`designs` and `latency_ms` are arrays.");
}

}  // namespace

void add_models(py::module_& module) {
  add_files(module);
  add_predicting(module);
  add_tables(module);
}

}  // namespace fleetfit::python
