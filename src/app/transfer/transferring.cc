#include "fleetfit/app/transferring.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/transfer/transfer_tables.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/core/thread_pool.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

Status expect_different(const std::string& a, const std::string& b) {
  if (a != b) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("'{}' is named twice, expected two devices", a));
}

double mean_of(const std::vector<AdaptTrial>& trials, double (*number)(const AdaptTrial&)) {
  double sum = 0;
  for (const auto& trial : trials) sum += number(trial);
  return sum / static_cast<double>(trials.size());
}

/// Everything about a pair of devices that all trials share.
struct AdaptPair {
  space::DesignTable table;
  transfer::LinearProxy proxy;
  std::vector<std::size_t> rows = {};  ///< measured on the target
  space::Population designs;           ///< of those rows
  std::vector<double> latency_ms = {};
};

struct TrialOutcome {
  AdaptTrial trial = {};
  std::optional<transfer::AdaptedProxy> adapted = std::nullopt;  ///< kept of the first trial only
};

Result<TrialOutcome> run_trial(const AdaptPair& pair, const AdaptProxyRequest& request,
                               std::size_t number) {
  const std::uint64_t seed = request.seed + number;
  FLEETFIT_ASSIGN(const auto sample,
                  sample_rows(pair.rows, request.samples + request.validation, seed,
                              fmt::format("designs measured on '{}'", request.target)));
  const auto designs = pick(pair.table.designs, sample);
  const auto latency_ms = pick(pair.table.values[1], sample);
  auto adapted = transfer::adapt(pair.proxy, {.designs = designs, .latency_ms = latency_ms},
                                 {.validation = static_cast<int>(request.validation)});
  if (!adapted) return core::within(fmt::format("'{}'", request.target), adapted.error());
  std::vector<double> said(pair.latency_ms.size());
  adapted->predict_ms(pair.designs, said);
  const auto srcc = core::spearman(said, pair.latency_ms);
  if (!srcc) return core::within(fmt::format("'{}'", request.target), srcc.error());
  TrialOutcome outcome{.trial = {.seed = seed,
                                 .srcc_after = *srcc,
                                 .report = adapted->report(),
                                 .alpha = adapted->scale()}};
  outcome.trial.report.target = request.target;
  if (number == 0) outcome.adapted = *std::move(adapted);
  return outcome;
}

Result<std::vector<TrialOutcome>> run_trials(const AdaptPair& pair,
                                             const AdaptProxyRequest& request) {
  std::vector<Result<TrialOutcome>> results(request.trials, TrialOutcome{});
  core::ThreadPool pool(request.threads);
  pool.parallel_for(request.trials,
                    [&](std::size_t i) { results[i] = run_trial(pair, request, i); });
  std::vector<TrialOutcome> outcomes;
  for (auto& result : results) {
    FLEETFIT_TRY(result);
    outcomes.push_back(*std::move(result));
  }
  return outcomes;
}

Result<AdaptPair> open_pair(const AdaptProxyRequest& request) {
  FLEETFIT_TRY(expect_different(request.proxy, request.target));
  if (request.samples < 2 || request.validation < 2 || request.trials < 1) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("{} samples, {} for validation, {} trials: expected at least 2, 2 and 1",
                    request.samples, request.validation, request.trials));
  }
  FLEETFIT_ASSIGN(auto table,
                  read_device_table(request.table, request.space, {request.proxy, request.target}));
  FLEETFIT_ASSIGN(auto proxy, transfer::LinearProxy::fit(table, 0));
  auto rows = complete_rows(std::span(table.values).subspan(1));
  auto designs = pick(table.designs, rows);
  auto latency_ms = pick(table.values[1], rows);
  return AdaptPair{.table = std::move(table),
                   .proxy = std::move(proxy),
                   .rows = std::move(rows),
                   .designs = std::move(designs),
                   .latency_ms = std::move(latency_ms)};
}

Status write_first(const TrialOutcome& first, const std::filesystem::path& output) {
  auto parts = first.adapted->parts();
  parts.report = first.trial.report;
  FLEETFIT_ASSIGN(const auto adapted, transfer::AdaptedProxy::make(std::move(parts)));
  return transfer::write_adapted(adapted, output);
}

}  // namespace

Result<EstimateReport> estimate_correlation(const EstimateRequest& request) {
  FLEETFIT_TRY(expect_different(request.a, request.b));
  FLEETFIT_ASSIGN(const auto table,
                  read_device_table(request.table, request.space, {request.a, request.b}));
  FLEETFIT_ASSIGN(const auto matrix, transfer::correlation_matrix({table.columns, table.values}));
  const auto rows = complete_rows(table.values);
  const auto a = pick(table.values[0], rows);
  const auto b = pick(table.values[1], rows);
  core::ThreadPool pool(request.threads);
  FLEETFIT_ASSIGN(const auto spread, transfer::srcc_spread(a, b, request.spread, pool));
  FLEETFIT_ASSIGN(const auto enough,
                  transfer::enough_samples(a, b, request.threshold, request.spread, pool));
  return EstimateReport{.spread = spread,
                        .options = request.spread,
                        .srcc = matrix.srcc[0][1],
                        .designs = rows.size(),
                        .threshold = request.threshold,
                        .enough = enough};
}

Result<SelectReport> select_proxy(const SelectRequest& request) {
  FLEETFIT_ASSIGN(const auto table, read_device_table(request.table.file, request.table.space,
                                                      request.table.devices));
  auto values = table.values;
  std::size_t designs = table.designs.size();
  if (request.samples) {
    FLEETFIT_ASSIGN(const auto rows, sample_rows(complete_rows(values), *request.samples,
                                                 request.seed, "designs measured on all devices"));
    for (auto& column : values) column = pick(column, rows);
    designs = rows.size();
  }
  FLEETFIT_ASSIGN(const auto matrix, transfer::correlation_matrix({table.columns, values}));
  return SelectReport{.ranking = transfer::rank_proxies(matrix),
                      .pool = transfer::cover_devices(matrix, request.threshold),
                      .threshold = request.threshold,
                      .designs = designs};
}

Result<AdaptProxyReport> adapt_proxy(const AdaptProxyRequest& request) {
  FLEETFIT_ASSIGN(const auto pair, open_pair(request));
  FLEETFIT_ASSIGN(const auto before,
                  transfer::correlation_matrix({pair.table.columns, pair.table.values}));
  FLEETFIT_ASSIGN(const auto outcomes, run_trials(pair, request));
  AdaptProxyReport report{.srcc_before = before.srcc[0][1],
                          .encoding = pair.proxy.model().encoding,
                          .proxy_fit_srcc = pair.proxy.model().held_out_srcc};
  for (const auto& outcome : outcomes) report.trials.push_back(outcome.trial);
  report.srcc_after = mean_of(report.trials, [](const auto& trial) { return trial.srcc_after; });
  report.alpha = mean_of(report.trials, [](const auto& trial) { return trial.alpha; });
  report.lambda = mean_of(report.trials, [](const auto& trial) { return trial.report.lambda; });
  if (!request.output) return report;
  FLEETFIT_TRY(write_first(outcomes.front(), *request.output));
  return report;
}

core::Fields fields_of(const EstimateReport*) {
  using Report = EstimateReport;
  using transfer::SpreadOptions;
  using transfer::SrccSpread;
  static constexpr core::Field kAll[] = {
      core::field<&Report::spread, &SrccSpread::mean>("mean"),
      core::field<&Report::spread, &SrccSpread::stddev>("std"),
      core::field<&Report::spread, &SrccSpread::ci95>("ci95"),
      core::field<&Report::options, &SpreadOptions::samples>("samples"),
      core::field<&Report::options, &SpreadOptions::trials>("trials"),
      core::field<&Report::spread, &SrccSpread::undefined>("trials_without_order"),
      FLEETFIT_MEMBERS(Report, srcc, designs, threshold),
      core::field<&Report::enough>("enough_samples")};
  return {.all = kAll};
}

Json to_json(const SelectReport& report) {
  auto ranking = Json::array();
  for (const auto& proxy : report.ranking)
    ranking.push_back({{"device", proxy.device}, {"mean_srcc", proxy.mean_srcc}});
  auto pool = Json::array();
  for (const auto& member : report.pool)
    pool.push_back({{"proxy", member.proxy}, {"devices", member.devices}});
  return {{"proxy", report.ranking.front().device},
          {"ranking", std::move(ranking)},
          {"designs", report.designs},
          {"threshold", report.threshold},
          {"pool", std::move(pool)}};
}

core::Fields fields_of(const AdaptTrial*) {
  using transfer::AdaptReport;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(AdaptTrial, seed, srcc_after),
      core::field<&AdaptTrial::report, &AdaptReport::held_out_srcc>("held_out_srcc"),
      FLEETFIT_MEMBERS(AdaptTrial, alpha),
      core::field<&AdaptTrial::report, &AdaptReport::lambda>("lambda"),
      core::field<&AdaptTrial::report, &AdaptReport::keeps_proxy>("kept_proxy")};
  return {.all = kAll};
}

core::Fields fields_of(const AdaptProxyReport*) {
  using Report = AdaptProxyReport;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(Report, srcc_before, srcc_after, alpha, lambda),
      core::computed(
          "changed_operators",
          [](const Report& report) { return changes_json(report.trials.front().report.changes); }),
      core::field<&Report::encoding>("proxy_encoding"),
      FLEETFIT_MEMBERS(Report, proxy_fit_srcc, trials)};
  return {.all = kAll};
}

}  // namespace fleetfit::app
