#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "app/fit/fit_sources.h"
#include "app/fit/fleet_tables.h"
#include "fleetfit/app/sources.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/search/search.h"

namespace fleetfit::app {
namespace {

constexpr std::size_t kUsualSamples = 10;
constexpr std::size_t kMostListed = 300'000;  // larger spaces are searched
constexpr double kLeastGainPercent = 0.005;

/// Designs that devices may get, and how accurate they are.
struct RatedDesigns {
  space::Population designs = space::Population(1);
  std::vector<double> accuracy = {};

  fit::Prospects prospects() const { return {designs, accuracy}; }
};

/// What the source keeps of a device; its place is that in the fleet file.
struct TableDevice {
  std::vector<transfer::KnownDevices> known = {};  // by budget
  std::optional<DeviceCells> cells = {};           // if its costs are looked up
  OpenedSource latency = {};                       // if nothing is measured there
  RatedDesigns found = {};                         // by a search for this device
  ProbeCount count = {};
};

class DesignSource final : public fit::FitSource {
 public:
  explicit DesignSource(const FitPlace& place)
      : place_(place), fleet_(place.fleet), devices_(place.fleet.devices.size()) {}

  Status open_tables() {
    FLEETFIT_ASSIGN(space_, core::within(fleet_.file.string(), space::find_space(fleet_.space)));
    tables_.emplace(fleet_, *space_);
    FLEETFIT_TRY(tables_->read());
    FLEETFIT_ASSIGN(accuracy_, core::within(fleet_.file.string(),
                                            open_source_of(fleet_.accuracy, Quantity::accuracy)));
    if (!fleet_.original.empty()) {
      auto original = space_->parse(fleet_.original);
      if (!original) return core::within(fleet_.file.string() + ": original", original.error());
      original_ = {.design = *std::move(original),
                   .accuracy = std::numeric_limits<double>::quiet_NaN()};
      static_cast<void>(accuracy_.source->evaluate({original_->design, original_->design.size()},
                                                   {&original_->accuracy, 1}));
    }
    return list_designs();
  }

  const space::Space& space() const override { return *space_; }

  fit::Subject subject() const override {
    const bool measures = std::ranges::any_of(fleet_.devices, [](const fit::FleetDevice& device) {
      return device.measure.starts_with("device:");
    });
    return {.about = fmt::format("designs of {}", space_->name()),
            .original = original_,
            .accuracy_scale = scale_,
            .least_gain = kLeastGainPercent / scale_,
            .usual_samples = kUsualSamples,
            .devices_at_once = measures ? 1 : place_.request.threads};
  }

  // --- devices ---

  Result<fit::OpenedDevice> open(std::size_t number, const fit::FleetDevice& written) override {
    fit::OpenedDevice device{.number = number, .written = written, .name = written.name};
    if (device.is_unmeasured()) return device;
    if (written.measure.starts_with("device:")) {
      device.name = written.measure.substr(written.measure.find(':') + 1);
      device.about = fmt::format("measured on {}", device.name);
    } else if (written.is_measured()) {
      device.name = agent_of(written);
      FLEETFIT_ASSIGN(device.about, describe_agent(fleet_, device.name));
    } else {
      FLEETFIT_ASSIGN(auto cells, tables_->cells_of(written));
      device.about = "looked up in " + cells.looked_up.table;
      devices_[number].cells.emplace(std::move(cells));
    }
    return device;
  }

  Status know(std::span<const fit::OpenedDevice> /*devices*/) override { return {}; }

  Result<fit::Prior> prior(const fit::OpenedDevice& device) override {
    auto& own = devices_[device.number];
    fit::Prior prior{.candidates = tables_->latencies().designs};
    if (own.cells) prior = {.given = own.cells->given, .candidates = own.cells->open};
    for (const auto& budget : fit::budgets_of(device.written)) {
      FLEETFIT_ASSIGN(auto known,
                      tables_->known_by(device.written, budget.quantity, place_.request.seed));
      own.known.push_back(std::move(known));
    }
    for (const auto& known : own.known) prior.known.push_back(&known);
    return prior;
  }

  Result<std::unique_ptr<fit::Prober>> prober(const fit::OpenedDevice& device) override {
    auto& own = devices_[device.number];
    if (own.cells)
      return make_table_prober({place_.workplace, place_.progress, place_.stop},
                               std::move(own.cells->looked_up));
    return make_prober(place_, {*space_, space_->name()}, device, own.count);
  }

  Result<fit::FittedDevice> look_up(const fit::OpenedDevice& device) override {
    auto found = fit::unfitted(device);
    if (found.budgets.size() != 1 || found.budgets[0].share)
      return fail(ErrorCode::invalid_input,
                  "a device that is known by latency: alone has one budget, of milliseconds");
    auto& latency = devices_[device.number].latency;
    FLEETFIT_ASSIGN(latency, open_source_of(device.written.latency, Quantity::latency_ms));
    found.about = latency.about;
    return found;
  }

  // --- designs that devices may get ---

  Status search(std::span<const fit::FittingDevice> /*devices*/) override { return {}; }

  /// Of a space that is too large to be listed: what a search finds by what was learned, beside
  /// the designs of the table.
  Result<fit::Prospects> prospects(const fit::FittingDevice& device) override {
    if (!searches_ || !device.fitter) return listed_.prospects();
    FLEETFIT_ASSIGN(const auto model, device.fitter->model(0));
    const search::Problem problem{.space = space_,
                                  .accuracy = accuracy_.source.get(),
                                  .costs = {{.name = "latency_ms", .source = model.get()}}};
    FLEETFIT_ASSIGN(const auto strategy,
                    search::make_nsga2(*space_, core::Random(place_.request.seed).split("fit"),
                                       {.population = 400, .generations = 40}));
    core::ThreadPool pool(1);
    FLEETFIT_ASSIGN(const auto searched,
                    search::run_search(problem, *strategy, pool, {.stop = place_.stop}));
    auto& found = devices_[device.opened.number].found;
    found = listed_;
    for (const auto& candidate : searched.pareto) {
      found.designs.add(candidate.design);
      found.accuracy.push_back(candidate.accuracy);
    }
    return found.prospects();
  }

  std::optional<fit::Prospects> common_prospects() const override {
    return searches_ ? std::nullopt : std::optional(listed_.prospects());
  }

  /// The most accurate that keeps the budget by the device's own source.
  Result<fit::FittedDevice> choose(const fit::OpenedDevice& device, fit::FittedDevice found,
                                   const fit::Prospects& prospects) override {
    std::vector<double> ms(prospects.designs.size());
    FLEETFIT_TRY(devices_[device.number].latency.source->evaluate(prospects.designs, ms));
    const auto& accuracy = prospects.accuracy;
    std::optional<std::size_t> best;
    std::optional<std::size_t> nearest;
    for (std::size_t i = 0; i < ms.size(); ++i) {
      if (std::isnan(ms[i]) || std::isnan(accuracy[i])) continue;
      if (!nearest || ms[i] < ms[*nearest]) nearest = i;
      const bool keeps = ms[i] <= found.budgets[0].limit;
      if (keeps && (!best || accuracy[i] > accuracy[*best])) best = i;
    }
    const auto point = [&](std::size_t i) {
      return fit::FitPoint{.design = space_->format(prospects.designs[i]),
                           .accuracy = accuracy[i],
                           .expected = {{ms[i], ms[i], ms[i]}}};
    };
    found.state = best ? fit::FitState::predicted : fit::FitState::unreachable;
    if (best) found.best = point(*best);
    if (!best && nearest) found.nearest = point(*nearest);
    return found;
  }

  // --- what is reported ---

  /// The source of accuracies is all that there is.
  Result<std::optional<std::vector<double>>> test(space::DesignBatch /*designs*/) override {
    return std::nullopt;
  }

  std::string accuracy_about() const override { return accuracy_.about; }

  Status write(const fit::OpenedDevice& /*opened*/, fit::FittedDevice& /*device*/) override {
    return {};
  }

  fit::FitAccount account(std::span<const fit::FittingDevice> devices) const override {
    constexpr std::size_t kPredictor = transfer::FewShotOptions{}.reference_samples;
    fit::FitAccount account{
        .alone_means = fmt::format("a predictor of each device's own, from as many designs as are "
                                   "looked at of each known device ({})",
                                   kPredictor)};
    for (const auto& device : devices) {
      account.measurements += device.found().tried.size();
      account.seconds += device.seconds;
      if (device.fitter) account.alone_measurements += kPredictor;
    }
    return account;
  }

 private:
  Result<OpenedSource> open_source_of(const std::string& text, Quantity quantity) const {
    return open_source({*space_, place_.workplace, place_.progress, place_.stop},
                       fleet_.located_source(text), quantity,
                       {.seed = place_.request.seed, .threads = place_.request.threads});
  }

  /// Designs that devices may get, if they can all be looked at.
  Status list_designs() {
    listed_.designs = space::Population(space_->genes().size());
    const auto size = space_->size().exact();
    if (accuracy_.designs) {
      listed_.designs = *accuracy_.designs;
    } else if (size && *size <= kMostListed) {
      std::vector<space::Choice> design(space_->genes().size());
      listed_.designs.add(design);
      while (space_->next(design)) listed_.designs.add(design);
    } else {
      listed_.designs = tables_->latencies().designs;
      searches_ = true;
    }
    listed_.accuracy.resize(listed_.designs.size());
    FLEETFIT_TRY(accuracy_.source->evaluate(listed_.designs, listed_.accuracy));
    const bool shares = std::ranges::none_of(listed_.accuracy, [](double a) { return a > 1; });
    scale_ = shares ? 100 : 1;
    return {};
  }

  const FitPlace place_;
  const fit::Fleet& fleet_;
  const space::Space* space_ = nullptr;
  std::optional<FleetTables> tables_;
  OpenedSource accuracy_;
  std::optional<fit::Original> original_;
  RatedDesigns listed_;
  bool searches_ = false;  // for each device, as there are too many designs to list
  double scale_ = 1;
  std::vector<TableDevice> devices_;
};

}  // namespace

Result<std::unique_ptr<fit::FitSource>> open_design_source(const FitPlace& place) {
  auto source = std::make_unique<DesignSource>(place);
  FLEETFIT_TRY(source->open_tables());
  return source;
}

}  // namespace fleetfit::app
