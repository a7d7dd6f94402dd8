#include "fleetfit/app/adapting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "app/elastic/adapt_timer.h"
#include "app/elastic/judging_subnets.h"
#include "app/elastic/subnet_images.h"
#include "fleetfit/adapt/guided.h"
#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/adapt/monitor.h"
#include "fleetfit/core/process_info.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/elastic/bundle.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/search/strategy.h"

namespace fleetfit::app {
namespace {

using elastic::Bundle;
using elastic::SubnetSpace;
using nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kStrategies = {"guided", "evolution", "annealing",
                                                         "nearby-evolution", "nearby-annealing"};

Result<adapt::Labels> parse_labels(const std::string& text) {
  if (text == "data") return adapt::Labels::data;
  if (text == "original") return adapt::Labels::original;
  return refuse(fmt::format("labels: \"{}\" is neither data nor original", text));
}

Status check_request(const AdaptRequest& request) {
  if (!(request.budget_ms > 0) || !std::isfinite(request.budget_ms))
    return refuse(fmt::format("budget: {} ms is not positive", request.budget_ms));
  if (request.samples < kLeastImages)
    return refuse(fmt::format("samples: {} images tell nothing; at least {} are needed",
                              request.samples, kLeastImages));
  if (std::ranges::find(kStrategies, request.strategy) == kStrategies.end())
    return refuse(fmt::format("strategy: \"{}\" is none of {}", request.strategy,
                              fmt::join(kStrategies, ", ")));
  if (request.test == 0) return refuse("test images: at least one is needed");
  if (!request.table.empty() && !request.proxy.empty())
    return refuse("a table and a proxy's table cannot both be given");
  return {};
}

Result<Bundle> open_bundle(const AdaptRequest& request, std::size_t batch) {
  return elastic::read_bundle(request.bundle, {.batch = static_cast<std::int64_t>(batch),
                                               .public_key = request.public_key});
}

/// `name` is one of kStrategies. Baselines have the sizes of AdaptiveNet's experiments, and end
/// when they do not get better.
Result<std::unique_ptr<search::Strategy>> make_strategy(const std::string& name,
                                                        const adapt::SubnetProblem& problem,
                                                        core::Random random) {
  constexpr std::size_t kPatience = 10;
  const auto patient = [&](Result<std::unique_ptr<search::Strategy>> strategy,
                           std::size_t patience) {
    return std::move(strategy).map(
        [&](auto made) { return search::make_patient(std::move(made), patience); });
  };
  if (name == "guided") return adapt::make_guided(problem, random);
  if (name == "evolution") {
    return patient(
        search::make_evolution(problem.space, random, {.population = 100, .generations = 41}),
        kPatience);
  }
  if (name == "annealing") {
    return patient(search::make_annealing(problem.space, random, {.chains = 20, .steps = 90}),
                   2 * kPatience);
  }
  if (name == "nearby-evolution") {
    return patient(
        search::make_evolution(adapt::nearby_moves(problem), random,
                               {.population = 50, .generations = 40, .mutation_ratio = 1}),
        kPatience);
  }
  return patient(search::make_annealing(adapt::nearby_moves(problem), random,
                                        {.chains = 20, .steps = 90, .last_temperature = 0.01}),
                 2 * kPatience);
}

/// One run of `adapt_bundle`.
class Adapting {
 public:
  Adapting(Workplace& workplace, const AdaptRequest& request, core::Progress& progress,
           std::stop_token stop)
      : workplace_(workplace), request_(request), progress_(progress), stop_(std::move(stop)) {}

  Result<AdaptReport> run() {
    started_ = workplace_.clock.now();
    report_.device = request_.device;
    report_.strategy = request_.strategy;
    report_.budget_ms = request_.budget_ms;
    report_.labels = request_.labels;
    for (const auto step : {&Adapting::open, &Adapting::make_table, &Adapting::look_at_fastest})
      FLEETFIT_TRY((this->*step)());
    if (report_.fastest.latency_ms <= request_.budget_ms) {
      FLEETFIT_TRY(search());
      FLEETFIT_TRY(judge_subnets({.request = request_,
                                  .space = *space_,
                                  .timer = timer_->timer(),
                                  .validation = validation_,
                                  .test = test_,
                                  .evaluator = [&](const auto& on) { return evaluator(on); }},
                                 searched_, report_));
      FLEETFIT_TRY(write());
    }
    FLEETFIT_TRY(timer_->keep_kernels());
    report_.total_s = seconds_since(started_);
    report_.peak_memory_bytes = core::peak_memory_bytes();
    return std::move(report_);
  }

 private:
  double seconds_since(std::chrono::nanoseconds start) const {
    return std::chrono::duration<double>(workplace_.clock.now() - start).count();
  }

  void say(const std::string& text) {
    core::ProgressTask(progress_, {.name = "adapt"}).message(text);
  }

  Status open() {
    FLEETFIT_TRY(check_request(request_));
    FLEETFIT_ASSIGN(labels_, parse_labels(request_.labels));
    FLEETFIT_ASSIGN(const auto quantile, adapt::parse_tail(request_.tail));
    for (const auto& [text, field] :
         {std::pair{&request_.reuse_memory, &Adapting::reuse_bytes_},
          std::pair{&request_.program_memory, &Adapting::program_bytes_}}) {
      if (*text == "0") continue;
      FLEETFIT_ASSIGN(const auto bytes, core::within("memory", measure::parse_bytes(*text)));
      this->*field = static_cast<std::size_t>(bytes);
    }
    FLEETFIT_ASSIGN(bundle_, open_bundle(request_, 1));
    std::error_code ignored;
    report_.bundle_bytes =
        static_cast<std::int64_t>(std::filesystem::file_size(request_.bundle, ignored));
    report_.model_bytes = bundle_.info.model_bytes;
    report_.memory_limit_bytes = static_cast<std::int64_t>(reuse_bytes_ + program_bytes_);
    space_ = std::make_unique<SubnetSpace>(bundle_.models);
    if (!request_.compare.empty()) {
      if (const auto known = space_->parse(request_.compare); !known)
        return core::within("compare", known.error());
    }
    for (auto* images : {&validation_, &test_}) {
      const bool is_test = images == &test_;
      FLEETFIT_ASSIGN(
          *images,
          open_images({.bundle = request_.bundle, .data = request_.data, .seed = request_.seed},
                      bundle_, is_test ? data::Split::test : data::Split::validation));
    }
    auto timing = request_.timing;
    timing.quantile = quantile;
    FLEETFIT_ASSIGN(timer_, open_timer(workplace_, request_.device, timing, program_bytes_));
    return {};
  }

  Result<adapt::LatencyTable> open_table() {
    const auto& file = request_.proxy.empty() ? request_.table : request_.proxy;
    if (file.empty()) {
      report_.table_from = "profile";
      return adapt::profile_branches(bundle_.models, *space_, timer_->timer(),
                                     {.seed = request_.seed, .stop = stop_}, progress_);
    }
    report_.table_from = request_.proxy.empty() ? "file" : "proxy";
    auto table = adapt::read_latency_table(file, bundle_.models);
    if (!table || request_.proxy.empty()) return table;
    return table_from_proxy(bundle_.models, *space_, *table, timer_->timer(),
                            {.seed = request_.seed});
  }

  Status make_table() {
    const auto start = workplace_.clock.now();
    FLEETFIT_ASSIGN(table_, open_table());
    table_.device = request_.device;
    report_.table_error_percent = table_.error_percent;
    report_.profile_s = seconds_since(start);
    say(fmt::format("latency table of {}: sums of branches are off by {:.1f} % on average",
                    request_.device, table_.error_percent));
    if (request_.save_table.empty()) return {};
    return adapt::write_latency_table(table_, request_.save_table);
  }

  Status look_at_fastest() {
    const auto path = adapt::fastest_subnet(bundle_.models, table_);
    FLEETFIT_ASSIGN(const auto network, elastic::join(bundle_.models, path));
    FLEETFIT_ASSIGN(const auto time, timer_->timer().time(network));
    report_.fastest = {.subnet = space_->format(adapt::design_of(*space_, path)),
                       .latency_ms = time.ms};
    return {};
  }

  Result<std::unique_ptr<adapt::Evaluator>> evaluator(const adapt::ImageBatches& images) {
    FLEETFIT_ASSIGN(auto made,
                    core::within(request_.data,
                                 adapt::Evaluator::create({large_.models, *space_, table_, images},
                                                          {.labels = labels_,
                                                           .reuse_bytes = reuse_bytes_,
                                                           .program_bytes = program_bytes_,
                                                           .threads = request_.threads})));
    // A search that was stopped still says what it has found.
    made->watch(&progress_, searched_.stopped ? std::stop_token() : stop_);
    return made;
  }

  Status search() {
    FLEETFIT_ASSIGN(large_, open_bundle(request_, kImageBatch));
    const adapt::SubnetProblem problem{bundle_.models, *space_, table_, request_.budget_ms};
    FLEETFIT_ASSIGN(
        const auto strategy,
        make_strategy(request_.strategy, problem, core::Random(request_.seed).split("search")));
    const auto images = validation_.part(0, request_.samples);
    report_.searched_images = images->images();
    const auto start = workplace_.clock.now();
    FLEETFIT_ASSIGN(const auto quality, evaluator(*images));
    FLEETFIT_ASSIGN(searched_,
                    adapt::search_subnets(problem, *quality, *strategy,
                                          {.stop = stop_, .observe = [&](const auto& so_far) {
                                             say_how_far(so_far);
                                           }}));
    report_.elapsed_s = seconds_since(start);
    report_.evaluated = quality->evaluated();
    report_.reuse = quality->reuse();
    report_.stopped = searched_.stopped;
    return {};
  }

  void say_how_far(const adapt::SearchedSubnets& so_far) {
    const adapt::SearchedSubnet* best = nullptr;
    for (const auto& subnet : so_far.subnets)
      if (subnet.latency_ms <= request_.budget_ms &&
          (best == nullptr || subnet.evaluation.score() > best->evaluation.score()))
        best = &subnet;
    say(best == nullptr
            ? fmt::format("{} subnets evaluated, none within the budget", so_far.subnets.size())
            : fmt::format("{} subnets evaluated, the best of {:.4g} ms has {:.2f} %",
                          so_far.subnets.size(), best->latency_ms,
                          100 * best->evaluation.accuracy));
  }

  Status write() {
    if (!report_.best || request_.pool.empty()) return {};
    return adapt::write_pool({.device = request_.device,
                              .bundle_sha256 = bundle_.manifest_sha256,
                              .budget_ms = request_.budget_ms,
                              .best = report_.best->subnet,
                              .entries = report_.pool},
                             request_.pool);
  }

  Workplace& workplace_;
  const AdaptRequest& request_;
  core::Progress& progress_;
  std::stop_token stop_;
  std::chrono::nanoseconds started_{};
  AdaptReport report_;
  adapt::Labels labels_ = adapt::Labels::data;
  std::size_t reuse_bytes_ = 0;
  std::size_t program_bytes_ = 0;
  Bundle bundle_;  // as networks run on the device, an image at a time
  Bundle large_;   // the same for batches of images
  std::unique_ptr<SubnetSpace> space_;
  SubnetImages validation_;
  SubnetImages test_;
  std::unique_ptr<DeviceTimer> timer_;
  adapt::LatencyTable table_;
  adapt::SearchedSubnets searched_;
};

/// The fastest subnet is known without its accuracy.
ordered_json fastest_json(const AdaptReport& report) {
  return {{"subnet", report.fastest.subnet}, {"latency_ms", report.fastest.latency_ms}};
}

ordered_json table_json(const AdaptReport& report) {
  return {{"from", report.table_from}, {"error_percent", report.table_error_percent}};
}

ordered_json images_json(const AdaptReport& report) {
  return {{"search", report.searched_images},
          {"choice", report.choice_images},
          {"test", report.test_images},
          {"labels", report.labels}};
}

}  // namespace

FLEETFIT_REPORT(AdaptedSubnet, subnet, latency_ms, accuracy)

core::Fields fields_of(const AdaptReport*) {
  using Report = AdaptReport;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(Report, best),
      core::field<&Report::compared>("compared").omit_default(),
      core::written_field<Report, fastest_json>("fastest"),
      FLEETFIT_MEMBERS(Report, budget_ms, device, strategy, evaluated, elapsed_s, profile_s,
                       total_s, reuse, pool),
      core::written_field<Report, table_json>("table"),
      core::written_field<Report, images_json>("images"),
      FLEETFIT_MEMBERS(Report, peak_memory_bytes, memory_limit_bytes, bundle_bytes, model_bytes,
                       stopped)};
  return {.all = kAll};
}

Result<AdaptReport> adapt_bundle(Workplace& workplace, const AdaptRequest& request,
                                 core::Progress& progress, const std::stop_token& stop) {
  return Adapting(workplace, request, progress, stop).run();
}

}  // namespace fleetfit::app
