#include "app/fit/fit_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "app/elastic/adapt_timer.h"
#include "app/elastic/subnet_accuracies.h"
#include "app/fit/agent_prober.h"
#include "app/fit/device_fitter.h"
#include "app/fit/fit_elastic.h"
#include "app/fit/fit_folder.h"
#include "app/fit/fit_probers.h"
#include "app/fit/fit_sharing.h"
#include "app/fit/fit_space.h"
#include "app/fit/fit_subnets.h"
#include "fleetfit/adapt/guided.h"
#include "fleetfit/app/bundles.h"
#include "fleetfit/app/devices.h"
#include "fleetfit/core/random.h"

namespace fleetfit::app {
namespace {

using elastic::Bundle;
using elastic::SubnetSpace;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kUsualSamples = 5;
constexpr std::size_t kTaught = 600;  // subnets from which the known devices are learned
constexpr std::size_t kChoiceImages = 1500;
constexpr std::size_t kTestImages = 4000;
constexpr double kLeastGain = 0.0005;  // of accuracy, as a share

/// What one device is fitted with; stays in its place.
struct DeviceWork {
  const FleetDevice* written = nullptr;
  FittedDevice* device = nullptr;
  std::string fingerprint = {};
  std::string name = {};  // of the workplace; "": nobody can run it here
  std::unique_ptr<Prober> prober = {};
  std::unique_ptr<DeviceFitter> fitter = {};
  ProbeCount count = {};
  bool gave_up = false;            // what went wrong is told
  adapt::LatencyTable table = {};  // what its branches take, roughly
  std::size_t finalists = 0;       // that a fit of this device alone would time
};

class ModelFleet {
 public:
  ModelFleet(Workplace& workplace, const Fleet& fleet, const FitRequest& request,
             core::Progress& progress, std::stop_token stop)
      : workplace_(workplace),
        fleet_(fleet),
        request_(request),
        progress_(progress),
        stop_(std::move(stop)),
        folder_(request.output) {}

  Status run(FitReport& report) {
    report_ = &report;
    for (const auto step :
         {&ModelFleet::open, &ModelFleet::open_devices, &ModelFleet::profile_proxy,
          &ModelFleet::learn_known, &ModelFleet::learn_devices, &ModelFleet::search,
          &ModelFleet::confirm_devices, &ModelFleet::share, &ModelFleet::tell_accuracies,
          &ModelFleet::write_devices, &ModelFleet::account}) {
      if (stop_.stop_requested()) return fail(ErrorCode::cancelled, "stopped");
      FLEETFIT_TRY((this->*step)());
    }
    return {};
  }

 private:
  void say(const std::string& text) {
    core::ProgressTask(progress_, {.name = "fit"}).message(text);
  }

  double seconds_since(std::chrono::nanoseconds start) const {
    return std::chrono::duration<double>(workplace_.clock.now() - start).count();
  }

  Status open() {
    FLEETFIT_ASSIGN(file_, elastic_bundle(fleet_, request_, folder_, progress_, stop_));
    report_->bundle = file_;
    FLEETFIT_ASSIGN(bundle_, elastic::read_bundle(file_));
    FLEETFIT_ASSIGN(large_,
                    elastic::read_bundle(file_, {.batch = static_cast<std::int64_t>(kImageBatch)}));
    space_ = std::make_unique<SubnetSpace>(bundle_.models);
    space_name_ = "subnets-" + bundle_.manifest_sha256.substr(0, 12);
    report_->accuracy_scale = 100;
    report_->about = fmt::format("subnets of {}, {} of them", bundle_.models.front().name,
                                 space_->size().decimal());
    for (auto* images : {&validation_, &test_}) {
      const auto split = images == &test_ ? data::Split::test : data::Split::validation;
      FLEETFIT_ASSIGN(*images,
                      open_images({.bundle = file_, .data = fleet_.data, .seed = request_.seed},
                                  bundle_, split));
    }
    return {};
  }

  /// Goes on with the others if the failure is the device's own, and keeps how long it took.
  Status take(DeviceWork& work, Status status) {
    const double seconds = std::exchange(work.count.seconds, 0);
    FLEETFIT_TRY(folder_.add_seconds("measuring " + work.device->name, seconds));
    if (status) return status;
    work.gave_up = true;
    return settle(*work.device, core::within(fleet_.place(*work.written), status.error()));
  }

  // --- devices ---

  /// Devices of this machine become devices of the workplace, under names of the fleet's own.
  Status open_devices() {
    report_->devices.reserve(fleet_.devices.size());
    work_.reserve(fleet_.devices.size());
    for (const auto& written : fleet_.devices) {
      FittedDevice device{.name = written.name, .budgets = budgets_of(written)};
      std::string fingerprint;
      auto name = open_device_of(written, device, fingerprint);
      if (!name && written.optional) {
        report_->left_out.push_back(fmt::format("{}: {}", written.name, name.error().message));
        continue;
      }
      if (!name && name.error().code == ErrorCode::invalid_input)
        return core::within(fleet_.place(written), name.error());
      report_->devices.push_back(std::move(device));
      work_.push_back({.written = &written,
                       .device = &report_->devices.back(),
                       .fingerprint = std::move(fingerprint)});
      if (name) {
        work_.back().name = *name;
      } else if (auto ok = take(work_.back(), tl::unexpected(name.error())); !ok) {
        return ok;
      }
    }
    return {};
  }

  /// The workplace's name of the device; "" for one that is known by its latencies alone.
  Result<std::string> open_device_of(const FleetDevice& written, FittedDevice& device,
                                     std::string& fingerprint) {
    if (!written.latency.empty()) return "";
    if (!written.agent.empty()) return open_agent(written, device);
    if (!written.device.empty()) {
      FLEETFIT_ASSIGN(const auto shown, show_device(workplace_, written.device));
      device.about = about(shown.device);
      fingerprint = shown.fingerprint;
      return written.device;
    }
    FLEETFIT_ASSIGN(const auto added,
                    add_device(workplace_, {.name = fmt::format("{}.{}", fleet_.name, written.name),
                                            .runtime = written.runtime,
                                            .threads = written.threads,
                                            .cores = written.cores,
                                            .precision = written.precision,
                                            .cpu_quota_percent = written.cpu_quota_percent,
                                            .memory_limit = written.memory_limit,
                                            .existing = ExistingDevice::replace}));
    device.about = about(added.device);
    fingerprint = added.fingerprint;
    return added.device.name;
  }

  /// The server's name of a device with an agent.
  Result<std::string> open_agent(const FleetDevice& written, FittedDevice& device) {
    FLEETFIT_ASSIGN(const auto client, call_server(fleet_));
    FLEETFIT_ASSIGN(device.about, describe_agent(*client, written.agent));
    return fmt::format("{}.{}", written.agent, written.name);
  }

  Result<std::unique_ptr<Prober>> prober_of(DeviceWork& work) {
    const ProbePlace place{workplace_, progress_, stop_};
    const NamedSpace space{*space_, space_name_};
    const auto& written = *work.written;
    if (written.agent.empty()) {
      return make_device_prober(place,
                                {.space = space,
                                 .device = work.name,
                                 .budgets = work.device->budgets,
                                 .protocol = measure::protocol_within(fleet_.measure_s),
                                 .threads = request_.threads},
                                work.count);
    }
    FLEETFIT_ASSIGN(auto client, call_server(fleet_));
    return make_agent_prober(place,
                             {.space = space,
                              .agent = written.agent,
                              .as = written.name,
                              .settings = {.runtime = written.runtime,
                                           .threads = written.threads,
                                           .cores = written.cores,
                                           .precision = written.precision,
                                           .cpu_quota_percent = written.cpu_quota_percent,
                                           .memory_limit = written.memory_limit},
                              .budgets = work.device->budgets,
                              .max_time_s = fleet_.measure_s,
                              .patience_s = fleet_.wait_s},
                             std::move(client), work.count);
  }

  static std::string about(const measure::Device& device) {
    std::string text = fmt::format("{} thread{} of this machine, runtime {}, {}", device.threads,
                                   device.threads == 1 ? "" : "s", device.runtime,
                                   measure::to_string(device.precision));
    if (device.limits.cpu_quota_percent)
      text += fmt::format(", {} % of a core", *device.limits.cpu_quota_percent);
    return text;
  }

  // --- what is known before any device is measured ---

  /// The first device whose runtime tells the times of operators, or this machine as it is.
  std::string proxy_name() const {
    for (const auto& work : work_)
      if (!work.name.empty() && work.written->agent.empty() && work.written->precision == "fp32" &&
          work.written->runtime == "auto" && !work.written->cpu_quota_percent)
        return work.name;
    return std::string(kLocalDevice);
  }

  Status profile_proxy() {
    const auto name = proxy_name();
    FLEETFIT_ASSIGN(const auto device, show_device(workplace_, name));
    const auto file = folder_.named(
        "table",
        fmt::format("{} {} {}", bundle_.manifest_sha256, device.fingerprint, request_.seed),
        "json");
    if (auto known = adapt::read_latency_table(file, bundle_.models)) {
      proxy_ = *std::move(known);
      return {};
    }
    say(fmt::format("what each branch takes on {}, from which the others are told", name));
    const auto start = workplace_.clock.now();
    FLEETFIT_ASSIGN(auto timer, open_timer(workplace_, name, {}));
    CountedTimer counted(timer->timer());
    FLEETFIT_ASSIGN(auto table,
                    adapt::profile_branches(bundle_.models, *space_, counted,
                                            {.seed = request_.seed, .stop = stop_}, progress_));
    FLEETFIT_TRY(timer->keep_kernels());
    proxy_ = std::move(table);
    proxy_.device = name;
    FLEETFIT_TRY(folder_.set_number("profiled", static_cast<double>(counted.networks())));
    FLEETFIT_TRY(folder_.add_seconds("profile", seconds_since(start)));
    return adapt::write_latency_table(proxy_, file);
  }

  Status learn_known() {
    FLEETFIT_ASSIGN(auto taught, taught_subnets(bundle_.models, *space_, proxy_,
                                                {.subnets = kTaught, .seed = request_.seed}));
    std::vector<std::size_t> columns(taught.columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = i;
    FLEETFIT_ASSIGN(auto known,
                    transfer::KnownDevices::learn(taught, columns, {.seed = request_.seed}));
    known_.emplace(std::move(known));
    candidates_ = taught.designs;
    return {};
  }

  // --- a few measurements on each ---

  Status learn_devices() {
    for (auto& work : work_) {
      if (stop_.stop_requested()) return fail(ErrorCode::cancelled, "stopped");
      if (work.gave_up) continue;
      FLEETFIT_TRY(take(work, work.written->latency.empty() ? learn(work) : believe(work)));
    }
    return {};
  }

  Status learn(DeviceWork& work) {
    say(fmt::format("a few measurements on {}", work.device->name));
    FLEETFIT_ASSIGN(work.prober, prober_of(work));
    FitterParts parts{.space = *space_, .prober = *work.prober};
    for (std::size_t i = 0; i < work.device->budgets.size(); ++i) parts.known.push_back(&*known_);
    work.fitter = std::make_unique<DeviceFitter>(std::move(parts), *work.device);
    const std::size_t samples = fleet_.measurements > 0 ? fleet_.measurements : kUsualSamples;
    FLEETFIT_TRY(work.fitter->measure_original(space_->original(), kNan));
    FLEETFIT_TRY(work.fitter->learn(candidates_, samples));
    work.table = bent_table(proxy_, *space_, work.device->tried);
    return {};
  }

  /// A phone that nobody here has: its own table or predictor is all that is known of it.
  Status believe(DeviceWork& work) {
    FLEETFIT_ASSIGN(work.table,
                    believed_table(fleet_.located_source(work.written->latency), bundle_.models));
    work.device->about = fmt::format("known by {} alone", work.written->latency);
    if (work.device->budgets.size() != 1)
      return fail(ErrorCode::invalid_input, "a device that is known by latency: has one budget");
    const auto original = space_->original();
    auto& budget = work.device->budgets[0];
    work.device->original = believed_point(work.table, *space_, original);
    if (budget.share) budget.limit = *budget.share * work.device->original->expected[0].value;
    return {};
  }

  // --- accuracies ---

  bool is_fitting(const DeviceWork& work) const {
    return !work.gave_up && (!work.fitter || work.fitter->is_open());
  }

  std::filesystem::path accuracy_file(std::string_view what) const {
    return folder_.named(fmt::format("accuracy-{}", what),
                         fmt::format("{} {} {} {} {} {}", bundle_.manifest_sha256, fleet_.data,
                                     request_.seed, fleet_.samples, kChoiceImages, kTestImages),
                         "json");
  }

  std::unique_ptr<SubnetAccuracies> accuracies_on(std::unique_ptr<adapt::ImageBatches> images,
                                                  std::string_view what) const {
    return std::make_unique<SubnetAccuracies>(AccuracyParts{.models = large_.models,
                                                            .space = *space_,
                                                            .table = proxy_,
                                                            .progress = progress_,
                                                            .stop = stop_,
                                                            .threads = request_.threads},
                                              std::move(images), accuracy_file(what));
  }

  /// The accuracy of a subnet is the same on all devices, so that what was evaluated for one serves
  /// all. The first search is thorough; the others look where it has not looked.
  Status search() {
    const auto quality = accuracies_on(validation_.part(0, fleet_.samples), "search");
    std::set<std::string> finalists;
    bool is_first = true;
    for (auto& work : work_) {
      if (!is_fitting(work)) continue;
      const auto start = workplace_.clock.now();
      say(fmt::format("searching for {}", work.device->name));
      FLEETFIT_TRY(search_for(work, *quality, is_first, finalists));
      const auto step = is_first ? std::string("first search") : std::string("other searches");
      FLEETFIT_TRY(folder_.add_seconds(step, seconds_since(start)));
      is_first = false;
    }
    return judge(finalists);
  }

  Status search_for(DeviceWork& work, SubnetAccuracies& quality, bool thorough,
                    std::set<std::string>& finalists) {
    const double budget = work.device->budgets[0].limit;
    const auto fastest =
        adapt::design_of(*space_, adapt::fastest_subnet(bundle_.models, work.table));
    finalists.insert(space_->format(fastest));
    if (work.table.subnet_ms(space_->path(fastest)) > 1.1 * budget) return {};
    const adapt::SubnetProblem problem{bundle_.models, *space_, work.table, budget};
    const adapt::GuidedOptions few{
        .first = 12, .batch = 8, .most_rounds = 4, .patience = 2, .levels = 0};
    const auto strategy = adapt::make_guided(problem, core::Random(request_.seed).split("search"),
                                             thorough ? adapt::GuidedOptions{} : few);
    FLEETFIT_ASSIGN(const auto searched,
                    adapt::search_subnets(problem, quality, *strategy, {.stop = stop_}));
    if (searched.stopped) return fail(ErrorCode::cancelled, "stopped");
    const auto chosen = adapt::finalists(searched, budget);
    work.finalists = chosen.near.size() + (thorough ? chosen.levels.size() : 0);
    for (const auto& numbers : {chosen.near, chosen.levels})
      for (const auto number : numbers)
        finalists.insert(space_->format(searched.subnets[number].design));
    return {};
  }

  /// What may be given to a device is evaluated on images that it was not found by.
  Status judge(const std::set<std::string>& finalists) {
    designs_ = space::Population(space_->genes().size());
    designs_.add(space_->original());
    const auto original = space_->format(space_->original());
    for (const auto& text : finalists)
      if (text != original) designs_.add(*space_->parse(text));
    for (const auto& work : work_)
      for (const auto& point : work.device->tried)
        if (!finalists.contains(point.design) && point.design != original)
          designs_.add(*space_->parse(point.design));
    drop_doubles();
    const auto quality = accuracies_on(validation_.part(fleet_.samples, kChoiceImages), "choice");
    const auto start = workplace_.clock.now();
    FLEETFIT_ASSIGN(const auto found, quality->evaluate(designs_));
    choice_images_ = quality->images();
    accuracies_.clear();
    for (const auto& evaluation : found) accuracies_.push_back(evaluation.accuracy);
    return folder_.add_seconds("choice", seconds_since(start));
  }

  void drop_doubles() {
    space::DesignIndex once(*space_);
    for (std::size_t i = 0; i < designs_.size(); ++i) once.add(std::as_const(designs_)[i]);
    designs_ = once.designs();
  }

  // --- confirming ---

  Prospects prospects() const { return {designs_, accuracies_}; }

  Status confirm_devices() {
    for (auto& work : work_) {
      if (stop_.stop_requested()) return fail(ErrorCode::cancelled, "stopped");
      if (!is_fitting(work)) continue;
      FLEETFIT_TRY(take(work, work.fitter ? confirm(work) : choose_believed(work)));
    }
    return {};
  }

  Status confirm(DeviceWork& work) {
    say(fmt::format("confirming candidates on {}", work.device->name));
    FLEETFIT_TRY(work.fitter->confirm(prospects(),
                                      {.most = fleet_.confirmations, .least_gain = kLeastGain}));
    return work.fitter->conclude(prospects());
  }

  Status choose_believed(DeviceWork& work) {
    choose_by_table(work.table, *space_, prospects(), *work.device);
    return {};
  }

  Status share() {
    report_->share_within = request_.share_within ? request_.share_within : fleet_.share_within;
    if (!report_->share_within) return {};
    std::vector<SharingDevice> devices;
    for (const auto& work : work_)
      if (work.fitter && is_fitting(work)) devices.push_back({work.device, work.fitter.get()});
    FLEETFIT_ASSIGN(report_->shared,
                    share_models(std::move(devices), prospects(), *space_,
                                 {.within = *report_->share_within / report_->accuracy_scale,
                                  .confirmations = fleet_.confirmations},
                                 report_->sharing_measurements));
    return {};
  }

  // --- what is told and written ---

  /// Everything was chosen by validation images; what is told is of test images.
  Status tell_accuracies() {
    space::DesignIndex told(*space_);
    visit_points([&](FitPoint& point) {
      if (!std::isnan(point.accuracy)) told.add(*space_->parse(point.design));
    });
    for (const auto& model : report_->shared) told.add(*space_->parse(model.design));
    const auto quality = accuracies_on(test_.part(0, kTestImages), "test");
    const auto start = workplace_.clock.now();
    FLEETFIT_ASSIGN(const auto found, quality->evaluate(told.designs()));
    const auto accuracy_of = [&](const std::string& design) {
      return found[*told.find(*space_->parse(design))].accuracy;
    };
    visit_points([&](FitPoint& point) {
      if (!std::isnan(point.accuracy)) point.accuracy = accuracy_of(point.design);
    });
    for (auto& device : report_->devices) drop_what_is_no_better(device);
    for (auto& model : report_->shared) model.accuracy = accuracy_of(model.design);
    report_->accuracy_about = fmt::format(
        "share of {} test images of {} whose class was found; networks were chosen by {} other "
        "images",
        quality->images(), fleet_.data, fleet_.samples + choice_images_);
    return folder_.add_seconds("test", seconds_since(start));
  }

  template <class Visit>
  void visit_points(const Visit& visit) {
    for (auto& device : report_->devices) {
      for (auto* one : {&device.original, &device.best, &device.nearest})
        if (*one) visit(**one);
      for (auto* several : {&device.tried, &device.pool, &device.better})
        for (auto& point : *several) visit(point);
    }
  }

  Status write_devices() {
    for (auto& work : work_) {
      if (!work.device->best) continue;
      auto written =
          write_fitted({.bundle = file_,
                        .bundle_sha256 = bundle_.manifest_sha256,
                        .data = fleet_.data,
                        .folder = request_.output,
                        .device_name = work.name.empty() ? work.written->name : work.name,
                        .int8 = work.written->precision == "int8",
                        .seed = request_.seed,
                        .threads = request_.threads},
                       *work.device, progress_);
      if (!written) return written;
    }
    return {};
  }

  /// Beside what the fleet has cost stands what fleetfit would have to do for each device by
  /// itself: make the model elastic, profile the device, search, and time the finalists.
  Status account() {
    auto& account = report_->account;
    const auto profiled = static_cast<std::size_t>(folder_.number("profiled"));
    const double once = folder_.seconds("elastify") + folder_.seconds("profile") +
                        folder_.seconds("first search") + folder_.seconds("choice") +
                        folder_.seconds("test");
    std::set<std::pair<std::string, std::string>> made;  // devices that are alike share them
    account.seconds = once + folder_.seconds("other searches");
    for (auto& work : work_) {
      if (!work.fitter) continue;
      FLEETFIT_TRY(take(work, {}));
      work.device->seconds = folder_.seconds("measuring " + work.device->name);
      const std::size_t measured = work.device->tried.size();
      for (const auto& point : work.device->tried) made.emplace(work.fingerprint, point.design);
      account.seconds += work.device->seconds;
      const double each = measured > 0 ? work.device->seconds / static_cast<double>(measured) : 0;
      account.alone_measurements += profiled + work.finalists;
      account.alone_seconds += once + each * static_cast<double>(work.finalists);
    }
    account.measurements = profiled + made.size();
    account.alone_means =
        "the model made elastic, the device profiled, searched for and its finalists timed, as "
        "'fleetfit elastify' and 'fleetfit adapt' do it; reckoned from what these steps took here "
        "for the first device";
    return {};
  }

  Workplace& workplace_;
  const Fleet& fleet_;
  const FitRequest& request_;
  core::Progress& progress_;
  std::stop_token stop_;
  FitFolder folder_;
  FitReport* report_ = nullptr;
  std::filesystem::path file_;
  Bundle bundle_;  // as networks run on devices, an image at a time
  Bundle large_;   // the same for batches of images
  std::unique_ptr<SubnetSpace> space_;
  std::string space_name_;
  SubnetImages validation_;
  SubnetImages test_;
  adapt::LatencyTable proxy_;
  std::optional<transfer::KnownDevices> known_;
  space::Population candidates_ = space::Population(1);
  space::Population designs_ = space::Population(1);  // that devices may get
  std::vector<double> accuracies_;
  std::size_t choice_images_ = 0;
  std::vector<DeviceWork> work_;
};

}  // namespace

Status fit_model_fleet(Workplace& workplace, const Fleet& fleet, const FitRequest& request,
                       core::Progress& progress, const std::stop_token& stop, FitReport& report) {
  return ModelFleet(workplace, fleet, request, progress, stop).run(report);
}

}  // namespace fleetfit::app
