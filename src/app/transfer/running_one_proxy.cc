#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/search/search_problem.h"
#include "app/transfer/transfer_tables.h"
#include "fleetfit/app/transferring.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/search/search.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kSmallSpace = 1'000'000;

/// A name without a colon is a column of the request's table.
std::string target_source(const OneProxyRequest& request) {
  if (request.target.find(':') != std::string::npos) return request.target;
  return fmt::format("table:{}#{}", request.table.string(), request.target);
}

/// The two sources, and the designs that both know if one of them knows but some.
struct OpenedTarget {
  OpenedSource latency = {};
  OpenedSource accuracy = {};
  std::optional<space::Population> listed = std::nullopt;
};

Result<OpenedTarget> open_target(const SourcePlace& place, const OneProxyRequest& request) {
  FLEETFIT_ASSIGN(auto latency, open_source(place, target_source(request), Quantity::latency_ms,
                                            request.sources));
  FLEETFIT_ASSIGN(auto accuracy,
                  open_source(place, request.accuracy, Quantity::accuracy, request.sources));
  OpenedTarget target{.latency = std::move(latency), .accuracy = std::move(accuracy)};
  for (const auto* source : {&target.latency, &target.accuracy}) {
    FLEETFIT_TRY(keep_known(place.space, *source, target.listed));
  }
  return target;
}

/// Designs to measure, in random order: of those that the target knows, or of the whole space.
Result<space::Population> draw_samples(const space::Space& space, const OpenedTarget& target,
                                       const OneProxyRequest& request) {
  const std::size_t most = std::max(request.most_samples, request.options.samples);
  if (!target.latency.designs)
    return space::sample_designs(space, {.seed = request.sources.seed, .count = most});
  const auto& known = *target.latency.designs;
  std::vector<std::size_t> rows(known.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  const std::size_t count = std::max(request.options.samples, std::min(most, rows.size()));
  FLEETFIT_ASSIGN(const auto sample,
                  sample_rows(rows, count, request.sources.seed, "designs that the target knows"));
  return pick(known, sample);
}

Result<std::unique_ptr<search::Strategy>> strategy_for(const space::Space& space,
                                                       const OpenedTarget& target,
                                                       std::uint64_t seed) {
  if (target.listed) return search::make_listed(*target.listed);
  const auto size = space.size().exact();
  if (size && *size <= kSmallSpace) return search::make_exhaustive(space);
  return search::make_nsga2(space, core::Random(seed));
}

Result<space::Population> search_pareto(const space::Space& space, const OpenedTarget& target,
                                        const space::Source& latency,
                                        const OneProxyRequest& request) {
  FLEETFIT_ASSIGN(auto strategy, strategy_for(space, target, request.sources.seed));
  const search::Problem problem{.space = &space,
                                .accuracy = target.accuracy.source.get(),
                                .costs = {{.name = "latency_ms", .source = &latency}}};
  core::ThreadPool pool(request.sources.threads);
  FLEETFIT_ASSIGN(const auto found, search::run_search(problem, *strategy, pool));
  space::Population designs(space.genes().size());
  for (const auto& candidate : found.pareto) designs.add(candidate.design);
  return designs;
}

Result<std::vector<double>> measure(const OpenedSource& target, space::DesignBatch designs) {
  std::vector<double> latency_ms(designs.size());
  FLEETFIT_TRY(target.source->evaluate(designs, latency_ms));
  return latency_ms;
}

}  // namespace

bool measures(const OneProxyRequest& request) { return measures(std::string_view(request.target)); }

Result<OneProxyReport> run_one_proxy(Workplace& workplace, const OneProxyRequest& request,
                                     core::Progress& progress, const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto table,
                  read_device_table(request.table, request.space, {request.proxy}));
  const auto& space = *table.space;
  FLEETFIT_ASSIGN(const auto proxy, transfer::LinearProxy::fit(table, 0));
  FLEETFIT_ASSIGN(
      const auto target,
      open_target({.space = space, .workplace = workplace, .progress = progress, .stop = stop},
                  request));
  FLEETFIT_ASSIGN(const auto samples, draw_samples(space, target, request));
  const transfer::OneProxyActions actions{
      .measure = [&](space::DesignBatch designs) { return measure(target.latency, designs); },
      .search =
          [&](const space::Source& latency) {
            return search_pareto(space, target, latency, request);
          }};
  FLEETFIT_ASSIGN(auto result, transfer::fit_one_proxy(proxy, *target.accuracy.source, samples,
                                                       actions, request.options));
  return OneProxyReport{.space = &space,
                        .result = std::move(result),
                        .threshold = request.options.threshold,
                        .target = target.latency.about};
}

namespace {

Json estimate_json(const transfer::SrccEstimate& estimate) {
  return {{"srcc", estimate.srcc}, {"ci95", {estimate.ci95.low, estimate.ci95.high}}};
}

}  // namespace

Json to_json(const OneProxyReport& report) {
  const auto& result = report.result;
  auto steps = Json::array();
  for (const auto& step : result.steps) {
    steps.push_back({{"samples", step.samples},
                     {"proxy", estimate_json(step.proxy)},
                     {"adapted", step.adapted ? estimate_json(*step.adapted) : Json()}});
  }
  auto pareto = Json::array();
  for (const auto& design : result.pareto) {
    pareto.push_back({{"design", report.space->format(design.design)},
                      {"latency_ms", design.latency_ms},
                      {"accuracy", design.accuracy}});
  }
  return {{"decision", result.adapted ? "adapt" : "reuse"},
          {"threshold", report.threshold},
          {"reaches_threshold", result.reaches_threshold},
          {"steps", std::move(steps)},
          {"changed_operators",
           result.adapted ? changes_json(result.adapted->report().changes) : Json::array()},
          {"pareto", std::move(pareto)},
          {"dropped", result.dropped},
          {"measurements", result.measurements}};
}

}  // namespace fleetfit::app
