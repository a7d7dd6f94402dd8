#include "app/fit/subnet_files.h"

#include <fmt/format.h>

#include <system_error>
#include <vector>

#include "fleetfit/adapt/pool.h"
#include "fleetfit/app/bundles.h"
#include "fleetfit/app/quantizing.h"

namespace fleetfit::app {
namespace {

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
