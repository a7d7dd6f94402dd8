#include "fleetfit/fit/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fit/sharing.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/space/design_index.h"

namespace fleetfit::fit {
namespace {

struct OpenedFleet {
  std::vector<FittingDevice> devices = {};  ///< some may have failed
  std::vector<std::string> left_out = {};   ///< that are not there, with the reason
};

struct Shared {
  std::optional<double> within = std::nullopt;
  std::vector<SharedModel> models = {};
  std::size_t measurements = 0;
};

/// What is given to devices.
struct Chosen {
  std::vector<FittedDevice> devices = {};
  std::vector<SharedModel> shared = {};
};

bool is_its_own(ErrorCode code) {
  return code == ErrorCode::device_failed || code == ErrorCode::unstable ||
         code == ErrorCode::unsupported;
}

/// Calls `visit` for all points that the report shows of a device.
void visit_points(FittedDevice& device, const std::function<void(FitPoint&)>& visit) {
  for (auto* one : {&device.original, &device.best, &device.nearest})
    if (*one) visit(**one);
  for (auto* several : {&device.tried, &device.pool, &device.better})
    for (auto& point : *several) visit(point);
}

/// Takes those points out of the device's pool, and of what larger budgets would give, that are no
/// more accurate than cheaper ones. The best stays: it was chosen without looking at these
/// accuracies.
void drop_what_is_no_better(FittedDevice& device) {
  const std::string best = device.best ? device.best->design : "";
  const auto drop = [&best](std::vector<FitPoint>& points, double so_far) {
    std::erase_if(points, [&](const FitPoint& point) {
      const bool better = point.reported_accuracy() > so_far;
      so_far = std::max(so_far, point.reported_accuracy());
      return !better && point.design != best;
    });
  };
  drop(device.pool, -1);
  drop(device.better, device.best ? device.best->reported_accuracy() : -1);
}

class Pipeline {
 public:
  Pipeline(const Fleet& fleet, FitSource& source, const FitOptions& options, const FitRun& run)
      : fleet_(fleet), source_(source), options_(options), run_(run), subject_(source.subject()) {}

  Result<FitReport> fit() {
    FLEETFIT_ASSIGN(auto opened, open());
    FLEETFIT_ASSIGN(auto learned, learn(std::move(opened.devices)));
    FLEETFIT_TRY(source_.search(learned));
    FLEETFIT_ASSIGN(const auto confirmed, confirm(std::move(learned)));
    FLEETFIT_ASSIGN(auto shared, share(confirmed));
    FLEETFIT_ASSIGN(auto chosen, test({.devices = found(confirmed), .shared = shared.models}));
    FLEETFIT_TRY(write(confirmed, chosen.devices));
    return FitReport{.name = fleet_.name,
                     .about = subject_.about,
                     .accuracy_about = source_.accuracy_about(),
                     .accuracy_scale = subject_.accuracy_scale,
                     .devices = std::move(chosen.devices),
                     .left_out = std::move(opened.left_out),
                     .share_within = shared.within,
                     .shared = std::move(chosen.shared),
                     .sharing_measurements = shared.measurements,
                     .account = source_.account(confirmed),
                     .bundle = subject_.bundle};
  }

 private:
  // --- steps ---

  Result<OpenedFleet> open() {
    OpenedFleet fleet;
    std::vector<OpenedDevice> present;
    for (std::size_t i = 0; i < fleet_.devices.size(); ++i) {
      const auto& written = fleet_.devices[i];
      auto opened = source_.open(i, written);
      if (!opened && written.optional) {
        fleet.left_out.push_back(fmt::format("{}: {}", written.name, opened.error().message));
        continue;
      }
      FittingDevice device{.opened =
                               opened.value_or(OpenedDevice{.number = i, .written = written})};
      device.unmeasured = unfitted(device.opened);
      if (!opened) FLEETFIT_TRY(settle(device, opened.error()));
      present.push_back(device.opened);
      fleet.devices.push_back(std::move(device));
    }
    FLEETFIT_TRY(check_stop());
    FLEETFIT_TRY(source_.know(present));
    return fleet;
  }

  /// A few measurements on each.
  Result<std::vector<FittingDevice>> learn(std::vector<FittingDevice> devices) {
    return each("a few measurements on", std::move(devices), [this](FittingDevice& device) {
      return device.opened.is_unmeasured() ? look_up(device) : measure_some(device);
    });
  }

  Result<std::vector<FittingDevice>> confirm(std::vector<FittingDevice> devices) {
    return each("confirming candidates on", std::move(devices),
                [this](FittingDevice& device) { return confirm_one(device); });
  }

  Result<Shared> share(std::span<const FittingDevice> devices) {
    Shared shared{.within = options_.share_within ? options_.share_within : fleet_.share_within};
    const auto prospects = source_.common_prospects();
    if (!shared.within || !prospects) return shared;
    std::vector<DeviceFitter*> fitters;
    for (const auto& device : devices)
      if (device.fitter && device.goes_on()) fitters.push_back(device.fitter.get());
    FLEETFIT_ASSIGN(auto sharing, share_models(std::move(fitters), *prospects, source_.space(),
                                               {.within = *shared.within / subject_.accuracy_scale,
                                                .confirmations = fleet_.confirmations}));
    shared.models = std::move(sharing.models);
    shared.measurements = sharing.measurements;
    return shared;
  }

  /// Everything was chosen by the same accuracies; if there are others, those are reported.
  Result<Chosen> test(Chosen chosen) {
    space::DesignIndex asked(source_.space());
    const auto design_of = [this](const std::string& text) { return *source_.space().parse(text); };
    for (auto& device : chosen.devices)
      visit_points(device, [&](FitPoint& point) {
        if (!std::isnan(point.accuracy)) asked.add(design_of(point.design));
      });
    for (const auto& model : chosen.shared) asked.add(design_of(model.design));
    FLEETFIT_TRY(check_stop());
    FLEETFIT_ASSIGN(const auto tested, source_.test(asked.designs()));
    if (!tested) return chosen;
    const auto accuracy_of = [&](const std::string& design) {
      return (*tested)[*asked.find(design_of(design))];
    };
    for (auto& device : chosen.devices) {
      visit_points(device, [&](FitPoint& point) {
        if (!std::isnan(point.accuracy)) point.test_accuracy = accuracy_of(point.design);
      });
      drop_what_is_no_better(device);
    }
    for (auto& model : chosen.shared) model.test_accuracy = accuracy_of(model.design);
    return chosen;
  }

  Status write(std::span<const FittingDevice> devices, std::vector<FittedDevice>& fitted) {
    FLEETFIT_TRY(check_stop());
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (fitted[i].best) FLEETFIT_TRY(source_.write(devices[i].opened, fitted[i]));
    return {};
  }

  // --- one device ---

  Status look_up(FittingDevice& device) {
    FLEETFIT_ASSIGN(device.unmeasured, source_.look_up(device.opened));
    return {};
  }

  Status measure_some(FittingDevice& device) {
    FLEETFIT_ASSIGN(device.prober, source_.prober(device.opened));
    FLEETFIT_ASSIGN(auto prior, source_.prior(device.opened));
    device.fitter = std::make_unique<DeviceFitter>(
        FitterParts{source_.space(), *device.prober, std::move(prior.known)},
        std::move(device.unmeasured));
    if (const auto& original = subject_.original)
      FLEETFIT_TRY(device.fitter->measure_original(original->design, original->accuracy));
    FLEETFIT_TRY(device.fitter->take(prior.given));
    return device.fitter->learn(
        prior.candidates, fleet_.measurements > 0 ? fleet_.measurements : subject_.usual_samples);
  }

  Status confirm_one(FittingDevice& device) {
    FLEETFIT_ASSIGN(const auto prospects, source_.prospects(device));
    if (!device.fitter) {
      FLEETFIT_ASSIGN(device.unmeasured,
                      source_.choose(device.opened, device.unmeasured, prospects));
      return {};
    }
    FLEETFIT_TRY(device.fitter->confirm(
        prospects, {.most = fleet_.confirmations, .least_gain = subject_.least_gain}));
    return device.fitter->conclude(prospects);
  }

  static std::vector<FittedDevice> found(std::span<const FittingDevice> devices) {
    std::vector<FittedDevice> all;
    for (const auto& device : devices) all.push_back(device.found());
    return all;
  }

  /// What went wrong with one device ends that device alone, unless it ends the fit.
  Status settle(FittingDevice& device, Error problem) {
    auto error = core::within(fleet_.place(device.opened.written), std::move(problem));
    if (!is_its_own(error.value().code)) return error;
    device.gave_up = true;
    if (device.fitter) {
      device.fitter->give_up(error.value().message);
    } else {
      device.unmeasured.reason = error.value().message;
    }
    return {};
  }

  /// Does a step for each device that goes on. After a failure no later device is begun, so that
  /// the failure of the first one is reported, whatever the number of threads.
  Result<std::vector<FittingDevice>> each(std::string_view what, std::vector<FittingDevice> devices,
                                          const std::function<Status(FittingDevice&)>& step) {
    FLEETFIT_TRY(check_stop());
    core::ProgressTask task(run_.progress,
                            {.name = "fit", .total = devices.size(), .unit = "devices"});
    std::vector<Status> outcomes(devices.size());
    std::atomic<std::size_t> first_failure = devices.size();
    const auto body = [&](std::size_t i) {
      auto& device = devices[i];
      if (i > first_failure) return;
      if (device.goes_on()) {
        if (subject_.devices_at_once == 1)
          task.message(fmt::format("{} {}", what, device.opened.written.name));
        outcomes[i] = timed(device, step);
      }
      if (!outcomes[i]) lower(first_failure, i);
      task.advance();
    };
    core::ThreadPool pool(subject_.devices_at_once);
    const auto done = pool.parallel_for(devices.size(), body, run_.stop);
    for (const auto& outcome : outcomes) FLEETFIT_TRY(outcome);
    FLEETFIT_TRY(done);
    return devices;
  }

  Status timed(FittingDevice& device, const std::function<Status(FittingDevice&)>& step) {
    const auto start = run_.clock.now();
    auto done = step(device);
    device.seconds += std::chrono::duration<double>(run_.clock.now() - start).count();
    return done ? done : settle(device, std::move(done.error()));
  }

  static void lower(std::atomic<std::size_t>& least, std::size_t value) {
    for (auto now = least.load(); value < now && !least.compare_exchange_weak(now, value);) {
    }
  }

  Status check_stop() const {
    if (run_.stop.stop_requested()) return fail(ErrorCode::cancelled, "stopped");
    return {};
  }

  const Fleet& fleet_;
  FitSource& source_;
  const FitOptions& options_;
  const FitRun& run_;
  const Subject subject_;
};

}  // namespace

std::vector<FitBudget> budgets_of(const FleetDevice& device) {
  std::vector<FitBudget> budgets;
  for (const auto& [quantity, budget] :
       {std::pair{space::Quantity::latency_ms, &device.budgets.latency},
        std::pair{space::Quantity::energy_mj, &device.budgets.energy},
        std::pair{space::Quantity::memory_mb, &device.budgets.memory}}) {
    if (!*budget) continue;
    const auto& written = **budget;
    const bool latency = quantity == space::Quantity::latency_ms;
    budgets.push_back(
        {.quantity = quantity,
         .limit = written.is_share ? std::numeric_limits<double>::quiet_NaN() : written.value,
         .statistic = latency ? device.budgets.statistic : "mean",
         .share = written.is_share ? std::optional(written.value) : std::nullopt});
  }
  return budgets;
}

FittedDevice unfitted(const OpenedDevice& device) {
  return {
      .name = device.written.name, .about = device.about, .budgets = budgets_of(device.written)};
}

Result<FitReport> fit_devices(const Fleet& fleet, FitSource& source, const FitOptions& options,
                              const FitRun& run) {
  return Pipeline(fleet, source, options, run).fit();
}

}  // namespace fleetfit::fit
