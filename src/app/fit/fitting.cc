#include "fleetfit/app/fitting.h"

#include <fmt/format.h>

#include <system_error>

#include "app/fit/fit_sources.h"
#include "fleetfit/fit/pipeline.h"

namespace fleetfit::app {

Result<fit::FitReport> fit_fleet(Workplace& workplace, const FitRequest& request,
                                 core::Progress& progress, const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto fleet, fit::read_fleet(request.fleet));
  std::error_code problem;
  std::filesystem::create_directories(request.output, problem);
  if (problem)
    return fail(ErrorCode::io, fmt::format("{}: cannot be made a folder: {}",
                                           request.output.string(), problem.message()));
  const FitPlace place{workplace, fleet, request, progress, stop};
  FLEETFIT_ASSIGN(const auto source,
                  fleet.is_of_space() ? open_design_source(place) : open_subnet_source(place));
  FLEETFIT_ASSIGN(auto report,
                  fit::fit_devices(fleet, *source, {.share_within = request.share_within},
                                   {workplace.clock, progress, stop}));
  report.page = request.output / "report.html";
  FLEETFIT_TRY(fit::write_report(report, request.output));
  return report;
}

}  // namespace fleetfit::app
