#include "app/fit/subnet_files.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "fleetfit/adapt/pool.h"
#include "fleetfit/app/bundles.h"
#include "fleetfit/app/quantizing.h"
#include "fleetfit/core/companion.h"
#include "fleetfit/core/file.h"

namespace fleetfit::app {
namespace {

constexpr std::string_view kTrainer = "fleetfit-train";

/// In what one bundle differs from another.
std::vector<std::string> flags_of(const fit::Fleet& fleet, const FitRequest& request) {
  const auto& plan = fleet.elastic;
  std::vector<std::string> flags = {"--data", fleet.data, fmt::format("--seed={}", request.seed)};
  const auto add = [&](std::string_view flag, const auto& value) {
    if (value) flags.push_back(fmt::format("{}={}", flag, *value));
  };
  add("--granularity", plan.granularity);
  add("--merge", plan.merge);
  add("--distill-epochs", plan.distill_epochs);
  add("--tune-epochs", plan.tune_epochs);
  add("--limit", plan.limit);
  if (!plan.shrink.empty()) flags.push_back("--shrink=" + plan.shrink);
  if (!plan.compute.empty()) flags.push_back("--compute=" + plan.compute);
  return flags;
}

bool is_there(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::exists(file, ignored);
}

std::filesystem::path relative_folder(const fit::FittedDevice& device) {
  return std::filesystem::path("devices") / device.name;
}

double cost_of(const fit::FitPoint& point) {
  return point.measured.empty() ? point.expected.front().value : point.measured.front();
}

Status write_pool_of(const WriteRequest& request, fit::FittedDevice& device) {
  std::vector<adapt::JudgedSubnet> judged = {{.subnet = device.best->design,
                                              .latency_ms = cost_of(*device.best),
                                              .measured = !device.best->measured.empty(),
                                              .accuracy = device.best->reported_accuracy()}};
  for (const auto& point : device.pool) {
    if (point.design == device.best->design) continue;
    judged.push_back({.subnet = point.design,
                      .latency_ms = cost_of(point),
                      .measured = !point.measured.empty(),
                      .accuracy = point.reported_accuracy()});
  }
  const auto file = relative_folder(device) / "pool.json";
  device.files.push_back(file);
  return adapt::write_pool({.device = request.device_name,
                            .bundle_sha256 = request.bundle_sha256,
                            .budget_ms = device.budgets.front().limit,
                            .best = device.best->design,
                            .entries = adapt::pool_entries(judged, 0)},
                           request.folder / file);
}

Status quantize(const WriteRequest& request, const std::filesystem::path& float_file,
                const std::filesystem::path& file, fit::FittedDevice& device,
                core::Progress& progress) {
  QuantizeRequest how;
  how.in = float_file;
  how.out = file;
  how.calibrate = request.data;
  how.seed = request.seed;
  how.threads = request.threads;
  FLEETFIT_ASSIGN(const auto done, quantize_model(how, progress));
  if (!done.accuracy) return {};
  device.best->test_accuracy = done.accuracy->int8_share;
  device.about += fmt::format("; accuracy after quantization, {:.2f} % before, on {} test images",
                              100 * done.accuracy->float_share, done.accuracy->images);
  return {};
}

}  // namespace

Result<std::filesystem::path> elastic_bundle(const FitPlace& place, FitFolder& folder) {
  const auto& fleet = place.fleet;
  if (!fleet.bundle.empty()) return fleet.located(fleet.bundle);
  const auto model = fleet.located(fleet.model);
  auto content = core::read_file(model);
  FLEETFIT_TRY(content);
  const auto flags = flags_of(fleet, place.request);
  for (const auto& flag : flags) *content += "\n" + flag;
  auto bundle = folder.named("elastic", *content, "ffb");
  if (is_there(bundle)) return bundle;

  core::ProgressTask(place.progress, {.name = "elastify"})
      .message(fmt::format("making {} elastic, once for all devices", model));
  std::vector<std::string> arguments = {"elastify", model};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  for (auto& word : {std::string("-o"), bundle.string(), std::string("--resume"),
                     std::string("--json"), fmt::format("--threads={}", place.request.threads)})
    arguments.push_back(word);
  const auto start = std::chrono::steady_clock::now();
  FLEETFIT_ASSIGN(
      const auto done,
      core::run_companion(kTrainer, arguments,
                          {.stop = place.stop, .environment = {{"GOMP_SPINCOUNT", "5000"}}}));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  FLEETFIT_TRY(folder.add_seconds("elastify", took.count()));
  if (place.stop.stop_requested()) {
    std::error_code ignored;  // what was learned so far is no bundle of the plan
    std::filesystem::remove(bundle, ignored);
    return fail(ErrorCode::cancelled, "stopped while the model was made elastic");
  }
  if (!done.status.succeeded() || !is_there(bundle))
    return fail(done.status.code == 2 ? ErrorCode::invalid_input : ErrorCode::device_failed,
                fmt::format("{}: it could not be made elastic", model));
  return bundle;
}

Status write_fitted(const WriteRequest& request, fit::FittedDevice& device,
                    core::Progress& progress) {
  const auto folder = relative_folder(device);
  std::error_code ignored;  // writing reports it
  std::filesystem::create_directories(request.folder / folder, ignored);
  const auto model = folder / "model.onnx";
  const auto float_model = request.int8 ? folder / "model-fp32.onnx" : model;
  FLEETFIT_TRY(extract_subnet(request.bundle, device.best->design, request.folder / float_model));
  device.files.push_back(model);
  if (request.int8) {
    auto done =
        quantize(request, request.folder / float_model, request.folder / model, device, progress);
    if (!done) return done;
    device.files.push_back(float_model);
  }
  return write_pool_of(request, device);
}

}  // namespace fleetfit::app
