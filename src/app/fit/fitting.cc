#include "fleetfit/app/fitting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "app/fit/fit_model.h"
#include "app/fit/fit_page.h"
#include "app/fit/fit_space.h"
#include "app/fit/fleet_file.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"

namespace fleetfit::app {
namespace {

constexpr std::array<std::string_view, 5> kStates = {"fitted", "predicted", "unreachable",
                                                     "waiting", "failed"};

Status make_folder(const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (!problem) return {};
  return fail(ErrorCode::io,
              fmt::format("{}: cannot be made a folder: {}", folder.string(), problem.message()));
}

Status write_results(const FitRequest& request, FitReport& report) {
  report.page = request.output / "report.html";
  const auto json = to_json(report);
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const auto folder = request.output / "devices" / report.devices[i].name;
    FLEETFIT_TRY(make_folder(folder));
    FLEETFIT_TRY(
        core::write_file(folder / "device.json", core::format_json(json.at("devices").at(i))));
  }
  FLEETFIT_TRY(core::write_file(request.output / "fit.json", core::format_json(json)));
  return core::write_file(report.page, fit_page(report));
}

}  // namespace

std::string_view to_string(FitState state) { return kStates[static_cast<std::size_t>(state)]; }

bool FitReport::all_fitted() const {
  return std::ranges::all_of(devices, [](const FittedDevice& device) {
    return device.state == FitState::fitted || device.state == FitState::predicted;
  });
}

Result<FitReport> fit_fleet(Workplace& workplace, const FitRequest& request,
                            core::Progress& progress, const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto fleet, read_fleet(request.fleet));
  FLEETFIT_TRY(make_folder(request.output));
  FitReport report{.name = fleet.name};
  const auto fit = fleet.is_of_space() ? fit_space_fleet : fit_model_fleet;
  FLEETFIT_TRY(fit(workplace, fleet, request, progress, stop, report));
  FLEETFIT_TRY(write_results(request, report));
  return report;
}

}  // namespace fleetfit::app
