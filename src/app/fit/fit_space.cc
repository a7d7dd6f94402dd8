#include "app/fit/fit_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "app/fit/agent_prober.h"
#include "app/fit/device_fitter.h"
#include "app/fit/fit_probers.h"
#include "app/fit/fit_sharing.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/search/search.h"
#include "fleetfit/space/table.h"

namespace fleetfit::app {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kUsualSamples = 10;
constexpr std::size_t kMostListed = 300'000;  // larger spaces are searched
constexpr double kLeastGainPercent = 0.005;
/// A column with a smaller share of its cells filled in is a new device.
constexpr double kKnownShare = 0.5;

/// A table with the digest of its file.
struct ReadTable {
  space::DesignTable table;
  std::string sha256;

  bool is_known(std::size_t column) const {
    const auto& values = table.values[column];
    const auto filled = std::ranges::count_if(values, [](double v) { return !std::isnan(v); });
    return static_cast<double>(filled) >= kKnownShare * static_cast<double>(values.size());
  }
};

Result<ReadTable> read_table(const std::string& file, const space::Space& space) {
  FLEETFIT_ASSIGN(auto text, core::read_file(file));
  auto sha256 = core::sha256_hex(text);
  FLEETFIT_ASSIGN(auto csv, core::parse_csv(std::move(text), file));
  FLEETFIT_ASSIGN(auto table, space::design_table_of(csv, file, space));
  return ReadTable{.table = std::move(table), .sha256 = std::move(sha256)};
}

/// What one device is fitted with; stays in its place.
struct DeviceWork {
  const FleetDevice* written = nullptr;
  std::vector<transfer::KnownDevices> known = {};  // by budget
  std::unique_ptr<Prober> prober = {};
  std::unique_ptr<DeviceFitter> fitter = {};
  ProbeCount count = {};
  space::Population given = space::Population(1);       // measured by others already
  space::Population measurable = space::Population(1);  // what can be chosen from
};

class SpaceFleet {
 public:
  SpaceFleet(Workplace& workplace, const Fleet& fleet, const FitRequest& request,
             core::Progress& progress, std::stop_token stop)
      : workplace_(workplace),
        fleet_(fleet),
        request_(request),
        progress_(progress),
        stop_(std::move(stop)) {}

  Status run(FitReport& report) {
    for (const auto step : {&SpaceFleet::open, &SpaceFleet::list_prospects})
      FLEETFIT_TRY((this->*step)());
    report.about = fmt::format("designs of {}", space_->name());
    report.accuracy_about = accuracy_.about;
    report.accuracy_scale = scale_;
    report.devices.resize(fleet_.devices.size());
    work_.resize(fleet_.devices.size());
    FLEETFIT_TRY(fit_all(report));
    FLEETFIT_TRY(share(report));
    account(report);
    return {};
  }

 private:
  Status open() {
    FLEETFIT_ASSIGN(space_, core::within(fleet_.file.string(), space::find_space(fleet_.space)));
    for (const auto& [quantity, file] : {std::pair{Quantity::latency_ms, &fleet_.table},
                                         std::pair{Quantity::energy_mj, &fleet_.energy_table},
                                         std::pair{Quantity::memory_mb, &fleet_.memory_table}}) {
      if (file->empty()) continue;
      FLEETFIT_ASSIGN(auto table, read_table(fleet_.located(*file), *space_));
      tables_.emplace(quantity, std::move(table));
    }
    FLEETFIT_ASSIGN(
        accuracy_,
        core::within(fleet_.file.string(),
                     open_source({*space_, workplace_, progress_, stop_},
                                 fleet_.located_source(fleet_.accuracy), Quantity::accuracy,
                                 {.seed = request_.seed, .threads = request_.threads})));
    if (fleet_.original.empty()) return {};
    auto original = space_->parse(fleet_.original);
    if (!original) return core::within(fleet_.file.string() + ": original", original.error());
    original_ = *std::move(original);
    return {};
  }

  /// Designs that devices may get, if they can all be looked at.
  Status list_prospects() {
    designs_ = space::Population(space_->genes().size());
    const auto size = space_->size().exact();
    if (accuracy_.designs) {
      designs_ = *accuracy_.designs;
    } else if (size && *size <= kMostListed) {
      std::vector<space::Choice> design(space_->genes().size());
      designs_.add(design);
      while (space_->next(design)) designs_.add(design);
    } else {
      designs_ = latencies().table.designs;
      searches_ = true;
    }
    accuracies_.resize(designs_.size());
    FLEETFIT_TRY(accuracy_.source->evaluate(designs_, accuracies_));
    const bool shares = std::ranges::none_of(accuracies_, [](double a) { return a > 1; });
    scale_ = shares ? 100 : 1;
    return {};
  }

  const ReadTable& latencies() const { return tables_.at(Quantity::latency_ms); }

  double accuracy_of(space::Design design) const {
    double accuracy = kNan;
    static_cast<void>(accuracy_.source->evaluate({design, design.size()}, {&accuracy, 1}));
    return accuracy;
  }

  /// Where only tables are looked up, devices do not disturb each other.
  Status fit_all(FitReport& report) {
    const bool measures = std::ranges::any_of(
        fleet_.devices, [](const FleetDevice& d) { return d.measure.starts_with("device:"); });
    core::ProgressTask task(progress_,
                            {.name = "fit", .total = fleet_.devices.size(), .unit = "devices"});
    std::vector<Status> outcomes(fleet_.devices.size());
    core::ThreadPool pool(measures ? 1 : request_.threads);
    auto done = pool.parallel_for(
        fleet_.devices.size(),
        [&](std::size_t i) {
          outcomes[i] = fit(fleet_.devices[i], work_[i], report.devices[i]);
          task.advance();
        },
        stop_);
    for (const auto& outcome : outcomes)
      if (!outcome) return outcome;
    return done;
  }

  Status fit(const FleetDevice& written, DeviceWork& work, FittedDevice& device) {
    const auto start = workplace_.clock.now();
    work.written = &written;
    device.name = written.name;
    device.budgets = budgets_of(written);
    Status done =
        written.latency.empty() ? learn_and_confirm(work, device) : believe(written, device);
    device.seconds = std::chrono::duration<double>(workplace_.clock.now() - start).count();
    if (!done) done = core::within(fleet_.place(written), done.error());
    return settle(device, std::move(done));
  }

  Status learn_and_confirm(DeviceWork& work, FittedDevice& device) {
    FLEETFIT_TRY(open_prober(work, device));
    FLEETFIT_TRY(learn_from_others(work, device));
    FitterParts parts{.space = *space_, .prober = *work.prober};
    for (const auto& known : work.known) parts.known.push_back(&known);
    work.fitter = std::make_unique<DeviceFitter>(std::move(parts), device);
    auto& fitter = *work.fitter;
    if (!original_.empty())
      FLEETFIT_TRY(fitter.measure_original(original_, accuracy_of(original_)));
    const std::size_t samples = fleet_.measurements > 0 ? fleet_.measurements : kUsualSamples;
    FLEETFIT_TRY(fitter.take(work.given));
    if (auto ok = fitter.learn(work.measurable, samples); !ok || !fitter.is_open()) return ok;
    FLEETFIT_ASSIGN(auto found, prospects_for(fitter));
    const Prospects prospects =
        searches_ ? Prospects{found.designs, found.accuracy} : Prospects{designs_, accuracies_};
    FLEETFIT_TRY(fitter.confirm(
        prospects, {.most = fleet_.confirmations, .least_gain = kLeastGainPercent / scale_}));
    return fitter.conclude(prospects);
  }

  struct FoundProspects {
    space::Population designs;
    std::vector<double> accuracy;
  };

  /// Of a space that is too large to be listed: what a search finds by what was learned, beside
  /// the designs of the table.
  Result<FoundProspects> prospects_for(const DeviceFitter& fitter) const {
    FoundProspects all{.designs = space::Population(space_->genes().size()), .accuracy = {}};
    if (!searches_) return all;
    all = {designs_, accuracies_};
    FLEETFIT_ASSIGN(const auto model, fitter.model(0));
    const search::Problem problem{.space = space_,
                                  .accuracy = accuracy_.source.get(),
                                  .costs = {{.name = "latency_ms", .source = model.get()}}};
    FLEETFIT_ASSIGN(const auto strategy,
                    search::make_nsga2(*space_, core::Random(request_.seed).split("fit"),
                                       {.population = 400, .generations = 40}));
    core::ThreadPool pool(1);
    FLEETFIT_ASSIGN(const auto found,
                    search::run_search(problem, *strategy, pool, {.stop = stop_}));
    for (const auto& candidate : found.pareto) {
      all.designs.add(candidate.design);
      all.accuracy.push_back(candidate.accuracy);
    }
    return all;
  }

  /// "table:FILE#COLUMN": which of its cells there are.
  Status open_prober(DeviceWork& work, FittedDevice& device) {
    const auto& written = *work.written;
    const NamedSpace space{*space_, space_->name()};
    if (written.measure.starts_with("device:")) {
      const auto name = written.measure.substr(std::string_view("device:").size());
      device.about = fmt::format("measured on {}", name);
      work.measurable = latencies().table.designs;
      work.prober = make_device_prober({workplace_, progress_, stop_},
                                       {.space = space,
                                        .device = name,
                                        .budgets = device.budgets,
                                        .protocol = measure::protocol_within(fleet_.measure_s),
                                        .threads = request_.threads},
                                       work.count);
      return {};
    }
    if (written.measure.starts_with("agent:")) return open_agent(work, device);
    FLEETFIT_ASSIGN(auto looked_up, look_up(work, device));
    device.about = "looked up in " + looked_up.table;
    work.prober =
        make_table_prober({workplace_, progress_, stop_}, std::move(looked_up), work.count);
    return {};
  }

  /// "agent:NAME"
  Status open_agent(DeviceWork& work, FittedDevice& device) {
    FLEETFIT_ASSIGN(auto client, call_server(fleet_));
    const auto name = work.written->measure.substr(std::string_view("agent:").size());
    FLEETFIT_ASSIGN(device.about, describe_agent(*client, name));
    work.measurable = latencies().table.designs;
    work.prober = make_agent_prober({workplace_, progress_, stop_},
                                    {.space = {*space_, space_->name()},
                                     .agent = name,
                                     .budgets = device.budgets,
                                     .max_time_s = fleet_.measure_s,
                                     .patience_s = fleet_.wait_s},
                                    std::move(client), work.count);
    return {};
  }

  Result<LookedUp> look_up(DeviceWork& work, const FittedDevice& device) {
    LookedUp from{
        .space = {*space_, space_->name()}, .device = device.name, .budgets = device.budgets};
    std::string digests;
    for (std::size_t i = 0; i < device.budgets.size(); ++i) {
      const auto [table, column] = cells_of(*work.written, device.budgets[i].quantity);
      FLEETFIT_TRY(table);
      FLEETFIT_ASSIGN(const auto found, (*table)->table.find_column(column));
      from.cells.push_back(space::table_source((*table)->table, found));
      digests += (*table)->sha256 + "#" + column + " ";
      if (i > 0) continue;
      list_cells(**table, found, work);
      from.table = fmt::format(
          "{}, column {}", std::filesystem::path((*table)->table.name).filename().string(), column);
    }
    from.fingerprint = "table-" + core::sha256_hex(digests);
    return from;
  }

  /// The table and column in which a cost of a device is looked up.
  std::pair<Result<const ReadTable*>, std::string> cells_of(const FleetDevice& written,
                                                            Quantity quantity) {
    constexpr std::string_view kKind = "table:";
    if (written.measure.empty()) return {&tables_.at(quantity), written.name};
    const auto hash = written.measure.rfind('#');
    if (hash == std::string::npos)
      return {fail(ErrorCode::invalid_input, "measure: expected table:FILE.csv#COLUMN"), ""};
    const auto column = written.measure.substr(hash + 1);
    const auto file = fleet_.located(written.measure.substr(kKind.size(), hash - kKind.size()));
    if (quantity != Quantity::latency_ms || file == fleet_.located(fleet_.table))
      return {&tables_.at(quantity), column};
    const std::scoped_lock lock(mutex_);
    const auto known = others_.find(file);
    if (known != others_.end()) return {&known->second, column};
    auto table = read_table(file, *space_);
    if (!table) return {tl::unexpected(std::move(table.error())), ""};
    return {&others_.emplace(file, *std::move(table)).first->second, column};
  }

  /// A device that has most of its cells is fitted as if it were new: only what is asked for is
  /// looked up. One with few cells is new: all are taken, and others have to measure more.
  static void list_cells(const ReadTable& table, std::size_t column, DeviceWork& work) {
    const auto& designs = table.table.designs;
    work.given = space::Population(designs.genes());
    work.measurable = space::Population(designs.genes());
    const bool known = table.is_known(column);
    for (std::size_t row = 0; row < designs.size(); ++row) {
      const bool filled = !std::isnan(table.table.values[column][row]);
      if (filled && !known) work.given.add(designs[row]);
      if (filled == known) work.measurable.add(designs[row]);
    }
  }

  Status learn_from_others(DeviceWork& work, const FittedDevice& device) {
    for (const auto& budget : device.budgets) {
      const auto at = tables_.find(budget.quantity);
      if (at == tables_.end())
        return fail(ErrorCode::invalid_input,
                    fmt::format("budget of {}: there is no table of known devices",
                                to_string(budget.quantity)));
      const auto& table = at->second;
      FLEETFIT_ASSIGN(const auto references, references_of(*work.written, table));
      FLEETFIT_ASSIGN(auto known, transfer::KnownDevices::learn(table.table, references,
                                                                {.seed = request_.seed}));
      work.known.push_back(std::move(known));
    }
    return {};
  }

  Result<std::vector<std::size_t>> references_of(const FleetDevice& written,
                                                 const ReadTable& table) const {
    std::vector<std::size_t> columns;
    for (const auto& name : written.references) {
      FLEETFIT_ASSIGN(const auto column, core::within("references", table.table.find_column(name)));
      columns.push_back(column);
    }
    if (!columns.empty()) return columns;
    const auto own = own_column(written);
    for (std::size_t i = 0; i < table.table.columns.size(); ++i)
      if (table.table.columns[i] != own && table.is_known(i)) columns.push_back(i);
    return columns;
  }

  /// Of the fleet's tables; "" if it has none there.
  std::string own_column(const FleetDevice& written) const {
    if (written.measure.empty()) return written.name;
    const auto hash = written.measure.rfind('#');
    const bool here = written.measure.starts_with(fmt::format("table:{}#", fleet_.table));
    return here ? written.measure.substr(hash + 1) : "";
  }

  /// A device of which all is known that will ever be known: the best by its source.
  Status believe(const FleetDevice& written, FittedDevice& device) {
    if (device.budgets.size() != 1 || device.budgets[0].share)
      return fail(ErrorCode::invalid_input,
                  "a device that is known by latency: alone has one budget, of milliseconds");
    FLEETFIT_ASSIGN(
        const auto source,
        open_source({*space_, workplace_, progress_, stop_}, fleet_.located_source(written.latency),
                    Quantity::latency_ms, {.seed = request_.seed, .threads = request_.threads}));
    device.about = source.about;
    std::vector<double> ms(designs_.size());
    FLEETFIT_TRY(source.source->evaluate(designs_, ms));
    believe_numbers(ms, device);
    return {};
  }

  void believe_numbers(const std::vector<double>& ms, FittedDevice& device) {
    const double limit = device.budgets[0].limit;
    std::optional<std::size_t> best;
    std::optional<std::size_t> nearest;
    for (std::size_t i = 0; i < ms.size(); ++i) {
      if (std::isnan(ms[i]) || std::isnan(accuracies_[i])) continue;
      if (!nearest || ms[i] < ms[*nearest]) nearest = i;
      if (ms[i] <= limit && (!best || accuracies_[i] > accuracies_[*best])) best = i;
    }
    const auto point = [&](std::size_t i) {
      return FitPoint{.design = space_->format(designs_[i]),
                      .accuracy = accuracies_[i],
                      .expected = {{ms[i], ms[i], ms[i]}}};
    };
    device.state = best ? FitState::predicted : FitState::unreachable;
    if (best) device.best = point(*best);
    if (!best && nearest) device.nearest = point(*nearest);
  }

  Status share(FitReport& report) {
    report.share_within = request_.share_within ? request_.share_within : fleet_.share_within;
    if (!report.share_within || searches_) return {};
    std::vector<SharingDevice> devices;
    for (std::size_t i = 0; i < work_.size(); ++i)
      if (work_[i].fitter && work_[i].fitter->is_open())
        devices.push_back({&report.devices[i], work_[i].fitter.get()});
    FLEETFIT_ASSIGN(report.shared,
                    share_models(std::move(devices), {designs_, accuracies_}, *space_,
                                 {.within = *report.share_within / scale_,
                                  .confirmations = fleet_.confirmations},
                                 report.sharing_measurements));
    return {};
  }

  void account(FitReport& report) const {
    constexpr std::size_t kPredictor = transfer::FewShotOptions{}.reference_samples;
    auto& account = report.account;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      account.measurements += report.devices[i].tried.size();
      account.seconds += report.devices[i].seconds;
      if (work_[i].fitter) account.alone_measurements += kPredictor;
    }
    account.alone_means = fmt::format(
        "a predictor of each device's own, from as many designs as are looked at of "
        "each known device ({})",
        kPredictor);
  }

  Workplace& workplace_;
  const Fleet& fleet_;
  const FitRequest& request_;
  core::Progress& progress_;
  std::stop_token stop_;
  const space::Space* space_ = nullptr;
  std::map<Quantity, ReadTable> tables_;
  std::mutex mutex_;
  std::map<std::string, ReadTable> others_;  // by file; guarded by mutex_
  OpenedSource accuracy_;
  std::vector<space::Choice> original_;
  space::Population designs_ = space::Population(1);
  std::vector<double> accuracies_;
  bool searches_ = false;
  double scale_ = 1;
  std::vector<DeviceWork> work_;
};

}  // namespace

std::vector<FitBudget> budgets_of(const FleetDevice& device) {
  std::vector<FitBudget> budgets;
  for (const auto& [quantity, budget] : {std::pair{Quantity::latency_ms, &device.budgets.latency},
                                         std::pair{Quantity::energy_mj, &device.budgets.energy},
                                         std::pair{Quantity::memory_mb, &device.budgets.memory}}) {
    if (!*budget) continue;
    const auto& written = **budget;
    const bool latency = quantity == Quantity::latency_ms;
    budgets.push_back({.quantity = quantity,
                       .limit = written.is_share ? kNan : written.value,
                       .statistic = latency ? device.budgets.statistic : "mean",
                       .share = written.is_share ? std::optional(written.value) : std::nullopt});
  }
  return budgets;
}

Status settle(FittedDevice& device, Status status) {
  if (status) return status;
  const auto code = status.error().code;
  const bool its_own = code == ErrorCode::device_failed || code == ErrorCode::unstable ||
                       code == ErrorCode::unsupported;
  if (!its_own) return status;
  device.state = FitState::failed;
  device.reason = status.error().message;
  return {};
}

Status fit_space_fleet(Workplace& workplace, const Fleet& fleet, const FitRequest& request,
                       core::Progress& progress, const std::stop_token& stop, FitReport& report) {
  return SpaceFleet(workplace, fleet, request, progress, stop).run(report);
}

}  // namespace fleetfit::app
