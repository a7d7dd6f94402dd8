#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "app/elastic/adapt_timer.h"
#include "app/fit/fit_sources.h"
#include "app/fit/subnet_files.h"
#include "app/fit/subnet_search.h"
#include "fleetfit/app/devices.h"
#include "fleetfit/space/design_index.h"

namespace fleetfit::app {
namespace {

constexpr std::size_t kUsualSamples = 5;
constexpr std::size_t kKnownSubnets = 600;  // from which the known devices are learned
constexpr double kLeastGain = 0.0005;       // of accuracy, as a share

/// What the source keeps of a device; its place is that in the fleet file.
struct SubnetDevice {
  adapt::LatencyTable table = {};  // what its branches take, roughly
  std::size_t finalists = 0;       // that a fit of this device alone would time
};

class SubnetSource final : public fit::FitSource {
 public:
  explicit SubnetSource(const FitPlace& place)
      : place_(place), folder_(place.request.output), devices_(place.fleet.devices.size()) {}

  Status open_bundle() {
    FLEETFIT_ASSIGN(file_, elastic_bundle(place_, folder_));
    FLEETFIT_ASSIGN(bundle_, elastic::read_bundle(file_));
    space_ = std::make_unique<elastic::SubnetSpace>(bundle_.models);
    space_name_ = "subnets-" + bundle_.manifest_sha256.substr(0, 12);
    ratings_.emplace(place_, folder_, *space_);
    return ratings_->open(file_, bundle_);
  }

  const space::Space& space() const override { return *space_; }

  fit::Subject subject() const override {
    return {.about = fmt::format("subnets of {}, {} of them", bundle_.models.front().name,
                                 space_->size().decimal()),
            .original = fit::Original{.design = space_->original(),
                                      .accuracy = std::numeric_limits<double>::quiet_NaN()},
            .accuracy_scale = 100,
            .least_gain = kLeastGain,
            .usual_samples = kUsualSamples,
            .bundle = file_};
  }

  Result<fit::OpenedDevice> open(std::size_t number, const fit::FleetDevice& written) override {
    return open_subnet_device(place_, number, written);
  }

  // --- what is known before any device is measured ---

  Status know(std::span<const fit::OpenedDevice> devices) override {
    FLEETFIT_TRY(profile_proxy(proxy_name(devices)));
    FLEETFIT_ASSIGN(auto table,
                    known_subnets(bundle_.models, *space_, proxy_,
                                  {.subnets = kKnownSubnets, .seed = place_.request.seed}));
    std::vector<std::size_t> columns(table.columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = i;
    FLEETFIT_ASSIGN(auto known,
                    transfer::KnownDevices::learn(table, columns, {.seed = place_.request.seed}));
    known_.emplace(std::move(known));
    to_learn_from_ = std::move(table.designs);
    return {};
  }

  Result<fit::Prior> prior(const fit::OpenedDevice& device) override {
    const transfer::KnownDevices* known = &*known_;
    return fit::Prior{.known = std::vector(fit::budgets_of(device.written).size(), known),
                      .candidates = std::as_const(to_learn_from_)};
  }

  Result<std::unique_ptr<fit::Prober>> prober(const fit::OpenedDevice& device) override {
    return make_subnet_prober(place_, {*space_, space_name_}, device, folder_);
  }

  Result<fit::FittedDevice> look_up(const fit::OpenedDevice& device) override {
    auto& table = devices_[device.number].table;
    const auto& source = device.written.latency;
    FLEETFIT_ASSIGN(table, table_from(place_.fleet.located_source(source), bundle_.models));
    auto found = fit::unfitted(device);
    found.about = fmt::format("known by {} alone", source);
    if (found.budgets.size() != 1)
      return fail(ErrorCode::invalid_input, "a device that is known by latency: has one budget");
    found.original = point_by_table(table, *space_, space_->original());
    auto& budget = found.budgets[0];
    if (budget.share) budget.limit = *budget.share * found.original->expected[0].value;
    return found;
  }

  // --- designs that devices may get ---

  /// The accuracy of a subnet is the same on all devices, so that what was evaluated for one serves
  /// all. The first search is thorough; the others look where it has not looked.
  Status search(std::span<const fit::FittingDevice> devices) override {
    const auto quality = ratings_->to_search(proxy_);
    std::set<std::string> finalists;
    bool is_first = true;
    for (const auto& device : devices) {
      if (!device.goes_on()) continue;
      say(fmt::format("searching for {}", device.opened.written.name));
      const auto start = place_.workplace.clock.now();
      auto& own = devices_[device.opened.number];
      if (device.fitter) own.table = corrected_table(proxy_, *space_, device.found().tried);
      const adapt::SubnetProblem problem{bundle_.models, *space_, own.table,
                                         device.found().budgets[0].limit};
      FLEETFIT_ASSIGN(
          own.finalists,
          add_finalists(problem, *quality,
                        {.thorough = is_first, .seed = place_.request.seed, .stop = place_.stop},
                        finalists));
      FLEETFIT_TRY(keep_time(is_first ? "first search" : "other searches", start));
      is_first = false;
    }
    return judge(candidates(finalists, devices));
  }

  Result<fit::Prospects> prospects(const fit::FittingDevice& /*device*/) override {
    return *common_prospects();
  }

  std::optional<fit::Prospects> common_prospects() const override {
    return fit::Prospects{designs_, accuracies_};
  }

  Result<fit::FittedDevice> choose(const fit::OpenedDevice& device, fit::FittedDevice found,
                                   const fit::Prospects& prospects) override {
    choose_by_table(devices_[device.number].table, *space_, prospects, found);
    return found;
  }

  // --- what is reported and written ---

  Result<std::optional<std::vector<double>>> test(space::DesignBatch designs) override {
    const auto start = place_.workplace.clock.now();
    FLEETFIT_ASSIGN(auto accuracies, ratings_->to_test(designs, proxy_));
    FLEETFIT_TRY(keep_time("test", start));
    return accuracies;
  }

  std::string accuracy_about() const override { return ratings_->about(); }

  Status write(const fit::OpenedDevice& opened, fit::FittedDevice& device) override {
    return write_fitted({.bundle = file_,
                         .bundle_sha256 = bundle_.manifest_sha256,
                         .data = place_.fleet.data,
                         .folder = place_.request.output,
                         .device_name = opened.name.empty() ? opened.written.name : opened.name,
                         .int8 = opened.written.precision == "int8",
                         .seed = place_.request.seed,
                         .threads = place_.request.threads},
                        device, place_.progress);
  }

  /// Beside what the fleet has cost stands what fleetfit would have to do for each device by
  /// itself: make the model elastic, profile the device, search, and time the finalists.
  fit::FitAccount account(std::span<const fit::FittingDevice> devices) const override {
    const auto profiled = static_cast<std::size_t>(folder_.number("profiled"));
    const double once = folder_.seconds("elastify") + folder_.seconds("profile") +
                        folder_.seconds("first search") + folder_.seconds("choice") +
                        folder_.seconds("test");
    fit::FitAccount account{
        .seconds = once + folder_.seconds("other searches"),
        .alone_means =
            "the model made elastic, the device profiled, searched for and its finalists timed, as "
            "'fleetfit elastify' and 'fleetfit adapt' do it; reckoned from what these steps took "
            "here for the first device"};
    std::set<std::pair<std::string, std::string>> made;  // devices that are alike share them
    for (const auto& device : devices) {
      if (!device.fitter) continue;
      const double seconds = folder_.seconds(measuring_step(device.opened));
      const auto& tried = device.found().tried;
      for (const auto& point : tried) made.emplace(device.opened.fingerprint, point.design);
      const double each = tried.empty() ? 0 : seconds / static_cast<double>(tried.size());
      const auto finalists = devices_[device.opened.number].finalists;
      account.seconds += seconds;
      account.alone_measurements += profiled + finalists;
      account.alone_seconds += once + each * static_cast<double>(finalists);
    }
    account.measurements = profiled + made.size();
    return account;
  }

 private:
  void say(const std::string& text) {
    core::ProgressTask(place_.progress, {.name = "fit"}).message(text);
  }

  Status keep_time(const std::string& step, std::chrono::nanoseconds start) {
    const std::chrono::duration<double> took = place_.workplace.clock.now() - start;
    return folder_.add_seconds(step, took.count());
  }

  /// The first device whose runtime reports the times of operators, or this machine as it is.
  static std::string proxy_name(std::span<const fit::OpenedDevice> devices) {
    for (const auto& [number, written, name, about, fingerprint] : devices)
      if (!name.empty() && written.agent.empty() && written.precision == "fp32" &&
          written.runtime == "auto" && !written.cpu_quota_percent)
        return name;
    return std::string(kLocalDevice);
  }

  Status profile_proxy(const std::string& name) {
    FLEETFIT_ASSIGN(const auto device, show_device(place_.workplace, name));
    const auto file = folder_.named(
        "table",
        fmt::format("{} {} {}", bundle_.manifest_sha256, device.fingerprint, place_.request.seed),
        "json");
    if (auto known = adapt::read_latency_table(file, bundle_.models)) {
      proxy_ = *std::move(known);
      return {};
    }
    say(fmt::format("what each branch takes on {}, from which other devices are predicted", name));
    const auto start = place_.workplace.clock.now();
    FLEETFIT_ASSIGN(const auto timer, open_timer(place_.workplace, name, {}));
    CountedTimer counted(timer->timer());
    FLEETFIT_ASSIGN(proxy_,
                    adapt::profile_branches(bundle_.models, *space_, counted,
                                            {.seed = place_.request.seed, .stop = place_.stop},
                                            place_.progress));
    FLEETFIT_TRY(timer->keep_kernels());
    proxy_.device = name;
    FLEETFIT_TRY(folder_.set_number("profiled", static_cast<double>(counted.networks())));
    FLEETFIT_TRY(keep_time("profile", start));
    return adapt::write_latency_table(proxy_, file);
  }

  /// The original, the finalists, and what was measured to learn.
  space::Population candidates(const std::set<std::string>& finalists,
                               std::span<const fit::FittingDevice> devices) const {
    space::DesignIndex once(*space_);
    once.add(space_->original());
    for (const auto& text : finalists) once.add(*space_->parse(text));
    for (const auto& device : devices)
      for (const auto& point : device.found().tried) once.add(*space_->parse(point.design));
    return once.designs();
  }

  /// What may be given to a device is evaluated on images that it was not found by.
  Status judge(space::Population designs) {
    designs_ = std::move(designs);
    const auto start = place_.workplace.clock.now();
    FLEETFIT_ASSIGN(accuracies_, ratings_->to_choose(designs_, proxy_));
    return keep_time("choice", start);
  }

  const FitPlace place_;
  FitFolder folder_;
  std::filesystem::path file_;
  elastic::Bundle bundle_;  // as networks run on devices, an image at a time
  std::unique_ptr<elastic::SubnetSpace> space_;
  std::string space_name_;
  std::optional<SubnetRatings> ratings_;
  adapt::LatencyTable proxy_;
  std::optional<transfer::KnownDevices> known_;
  space::Population to_learn_from_ = space::Population(1);
  space::Population designs_ = space::Population(1);  // that devices may get
  std::vector<double> accuracies_;
  std::vector<SubnetDevice> devices_;
};

}  // namespace

Result<std::unique_ptr<fit::FitSource>> open_subnet_source(const FitPlace& place) {
  auto source = std::make_unique<SubnetSource>(place);
  FLEETFIT_TRY(source->open_bundle());
  return source;
}

}  // namespace fleetfit::app
