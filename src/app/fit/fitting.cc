#include "fleetfit/app/fitting.h"

#include <fmt/format.h>

#include <utility>

#include "app/fit/fit_sources.h"
#include "fleetfit/app/devices.h"
#include "fleetfit/core/file.h"
#include "fleetfit/fit/pipeline.h"

namespace fleetfit::app {

Result<fit::FitReport> fit_fleet(Workplace& workplace, const FitRequest& request,
                                 core::Progress& progress, const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto fleet, fit::read_fleet(request.fleet));
  FLEETFIT_TRY(core::create_folder(request.output));
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

namespace {

std::string words_of(const measure::Device& device) {
  std::string text = fmt::format("{} thread{} of this machine, runtime {}, {}", device.threads,
                                 device.threads == 1 ? "" : "s", device.runtime,
                                 measure::to_string(device.precision));
  if (device.limits.cpu_quota_percent)
    text += fmt::format(", {} % of a core", *device.limits.cpu_quota_percent);
  return text;
}

fit::OpenedDevice opened_here(std::size_t number, const fit::FleetDevice& written,
                              const DeviceSummary& shown) {
  return {.number = number,
          .written = written,
          .name = shown.device.name,
          .about = words_of(shown.device),
          .fingerprint = shown.fingerprint};
}

class SecondsKeepingProber final : public fit::Prober {
 public:
  SecondsKeepingProber(FitFolder& folder, std::string step)
      : folder_(folder), step_(std::move(step)) {}

  /// The prober that measures counts here.
  ProbeCount& count() { return count_; }
  void measure_by(std::unique_ptr<fit::Prober> prober) { prober_ = std::move(prober); }

  Result<std::vector<fit::Probe>> measure(space::DesignBatch designs) override {
    auto probes = prober_->measure(designs);
    if (const double seconds = std::exchange(count_.seconds, 0); seconds > 0)
      FLEETFIT_TRY(folder_.add_seconds(step_, seconds));
    return probes;
  }

  bool waits_for_others() const override { return prober_->waits_for_others(); }

 private:
  FitFolder& folder_;
  std::string step_;
  ProbeCount count_;
  std::unique_ptr<fit::Prober> prober_;
};

}  // namespace

std::string agent_of(const fit::FleetDevice& written) {
  constexpr std::string_view kAgent = "agent:";
  const bool is_named = written.measure.starts_with(kAgent);
  return is_named ? written.measure.substr(kAgent.size()) : written.agent;
}

Result<std::unique_ptr<fit::Prober>> make_prober(const FitPlace& place, const NamedSpace& space,
                                                 const fit::OpenedDevice& device,
                                                 ProbeCount& count) {
  const ProbePlace probing{place.workplace, place.progress, place.stop};
  const auto& written = device.written;
  const auto agent = agent_of(written);
  if (agent.empty()) {
    return make_device_prober(probing,
                              {.space = space,
                               .device = device.name,
                               .budgets = fit::budgets_of(written),
                               .protocol = measure::protocol_within(place.fleet.measure_s),
                               .threads = place.request.threads},
                              count);
  }
  FLEETFIT_ASSIGN(auto client, call_server(place.fleet));
  return make_agent_prober(probing,
                           {.space = space,
                            .agent = agent,
                            .as = written.agent.empty() ? "" : written.name,
                            .settings = {.runtime = written.runtime,
                                         .threads = written.threads,
                                         .cores = written.cores,
                                         .precision = written.precision,
                                         .cpu_quota_percent = written.cpu_quota_percent,
                                         .memory_limit = written.memory_limit},
                            .budgets = fit::budgets_of(written),
                            .max_time_s = place.fleet.measure_s,
                            .patience_s = place.fleet.wait_s},
                           std::move(client), count);
}

Result<fit::OpenedDevice> open_subnet_device(const FitPlace& place, std::size_t number,
                                             const fit::FleetDevice& written) {
  if (!written.latency.empty()) return fit::OpenedDevice{.number = number, .written = written};
  if (!written.agent.empty()) {
    FLEETFIT_ASSIGN(auto about, describe_agent(place.fleet, written.agent));
    return fit::OpenedDevice{.number = number,
                             .written = written,
                             .name = fmt::format("{}.{}", written.agent, written.name),
                             .about = std::move(about)};
  }
  if (!written.device.empty()) {
    FLEETFIT_ASSIGN(const auto shown, show_device(place.workplace, written.device));
    return opened_here(number, written, shown);
  }
  FLEETFIT_ASSIGN(
      const auto added,
      add_device(place.workplace, {.name = fmt::format("{}.{}", place.fleet.name, written.name),
                                   .runtime = written.runtime,
                                   .threads = written.threads,
                                   .cores = written.cores,
                                   .precision = written.precision,
                                   .cpu_quota_percent = written.cpu_quota_percent,
                                   .memory_limit = written.memory_limit,
                                   .existing = ExistingDevice::replace}));
  return opened_here(number, written, added);
}

Result<std::unique_ptr<fit::Prober>> make_subnet_prober(const FitPlace& place,
                                                        const NamedSpace& space,
                                                        const fit::OpenedDevice& device,
                                                        FitFolder& folder) {
  auto keeping = std::make_unique<SecondsKeepingProber>(folder, measuring_step(device));
  FLEETFIT_ASSIGN(auto prober, make_prober(place, space, device, keeping->count()));
  keeping->measure_by(std::move(prober));
  return keeping;
}

std::string measuring_step(const fit::OpenedDevice& device) {
  return "measuring " + device.written.name;
}

}  // namespace fleetfit::app
