#include "fleetfit/app/few_shot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/space/table.h"

namespace fleetfit::app {
namespace {

using space::DesignTable;
using transfer::KnownDevices;

constexpr std::size_t kFewestSamples = 3;
constexpr std::size_t kNext = 5;  // designs to name when samples do not suffice
/// A target with a smaller share of cells filled in is a new device.
constexpr double kKnownShare = 0.5;

struct Problem {
  DesignTable table;
  std::vector<std::size_t> references;
  std::size_t target = 0;
  std::vector<std::size_t> measured;  // rows of the target with a latency

  double latency(std::size_t row) const { return table.values[target][row]; }
  bool is_new_device() const {
    return static_cast<double>(measured.size()) <
           kKnownShare * static_cast<double>(table.designs.size());
  }
  std::string place() const {
    return fmt::format("{}: target {}", table.name, table.columns[target]);
  }
};

/// A fit, and which rows it was made from.
struct Fit {
  std::vector<std::size_t> rows;
  std::unique_ptr<const transfer::FewShotModel> model;
};

struct RehearsedTrial {
  FewShotTrial trial;
  Fit fit;
  std::vector<transfer::PredictedLatency> predictions;
};

Status check(const FewShotRequest& request) {
  const auto wrong = [](std::string what) {
    return fail(ErrorCode::invalid_input, std::move(what));
  };
  if (request.references.empty()) return wrong("--references names no device");
  if (std::ranges::count(request.references, request.target) > 0)
    return wrong(fmt::format("target {} is one of the references", request.target));
  for (const auto& name : request.references) {
    if (std::ranges::count(request.references, name) > 1)
      return wrong(fmt::format("reference {} is given twice", name));
  }
  if (request.samples < kFewestSamples)
    return wrong(
        fmt::format("--samples is {}, at least {} are needed", request.samples, kFewestSamples));
  if (request.trials == 0) return wrong("--trials is 0");
  return {};
}

Result<Problem> read_problem(const FewShotRequest& request) {
  FLEETFIT_TRY(check(request));
  FLEETFIT_ASSIGN(const auto space, space::find_space(request.space));
  auto columns = request.references;
  columns.push_back(request.target);
  FLEETFIT_ASSIGN(auto table,
                  space::read_design_table(request.table, *space, {.columns = std::move(columns)}));
  Problem problem{.table = std::move(table), .references = {}, .target = 0, .measured = {}};
  problem.target = request.references.size();
  for (std::size_t i = 0; i < request.references.size(); ++i) problem.references.push_back(i);
  for (std::size_t row = 0; row < problem.table.designs.size(); ++row)
    if (!std::isnan(problem.latency(row))) problem.measured.push_back(row);
  return problem;
}

space::Population designs_of(const DesignTable& table, std::span<const std::size_t> rows) {
  space::Population designs(table.designs.genes());
  for (const auto row : rows) designs.add(table.designs[row]);
  return designs;
}

std::vector<std::string> texts_of(const DesignTable& table, std::span<const std::size_t> rows) {
  std::vector<std::string> texts;
  for (const auto row : rows) texts.push_back(table.space->format(table.designs[row]));
  return texts;
}

std::vector<std::size_t> picked(std::span<const std::size_t> rows,
                                std::span<const std::size_t> places) {
  std::vector<std::size_t> out;
  for (const auto place : places) out.push_back(rows[place]);
  return out;
}

std::vector<std::size_t> rows_without(const DesignTable& table,
                                      std::span<const std::size_t> excluded) {
  std::vector<bool> is_excluded(table.designs.size());
  for (const auto row : excluded) is_excluded[row] = true;
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < is_excluded.size(); ++row)
    if (!is_excluded[row]) rows.push_back(row);
  return rows;
}

transfer::FewShotOptions options_of(const FewShotRequest& request, std::uint64_t seed) {
  return {.seed = seed, .reference_samples = request.reference_samples};
}

Result<Fit> fit_rows(const Problem& problem, const KnownDevices& known,
                     std::vector<std::size_t> rows) {
  std::vector<double> latencies;
  for (const auto row : rows) latencies.push_back(problem.latency(row));
  FLEETFIT_ASSIGN(auto model, core::within(problem.place(),
                                           known.fit(designs_of(problem.table, rows), latencies)));
  return Fit{.rows = std::move(rows), .model = std::move(model)};
}

/// Of rows with a latency, but for those in `left_out`.
double coverage(const Problem& problem, std::span<const transfer::PredictedLatency> predictions,
                std::span<const std::size_t> left_out) {
  std::size_t inside = 0;
  std::size_t all = 0;
  for (const auto row : rows_without(problem.table, left_out)) {
    const double latency = problem.latency(row);
    if (std::isnan(latency)) continue;
    ++all;
    if (predictions[row].low_ms <= latency && latency <= predictions[row].high_ms) ++inside;
  }
  return all > 0 ? static_cast<double>(inside) / static_cast<double>(all)
                 : std::numeric_limits<double>::quiet_NaN();
}

double mean_percentage_error(const Problem& problem,
                             std::span<const transfer::PredictedLatency> predictions) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto row : problem.measured) {
    if (problem.table.space->live_slots(problem.table.designs[row]).none()) continue;
    sum += std::abs(predictions[row].ms / problem.latency(row) - 1);
    ++count;
  }
  return count > 0 ? 100 * sum / static_cast<double>(count)
                   : std::numeric_limits<double>::quiet_NaN();
}

Result<FewShotTrial> compare(const Problem& problem,
                             std::span<const transfer::PredictedLatency> predictions,
                             std::span<const std::size_t> samples) {
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const auto row : problem.measured) {
    predicted.push_back(predictions[row].ms);
    measured.push_back(problem.latency(row));
  }
  FLEETFIT_ASSIGN(const auto srcc,
                  core::within(problem.place(), core::spearman(predicted, measured)));
  return FewShotTrial{.seed = 0,
                      .srcc = srcc,
                      .mape = mean_percentage_error(problem, predictions),
                      .coverage90 = coverage(problem, predictions, samples)};
}

/// Measurements are looked up in the target's column, which is then held against the predictions.
Result<RehearsedTrial> run_trial(const Problem& problem, const FewShotRequest& request,
                                 std::uint64_t seed) {
  FLEETFIT_ASSIGN(const auto known, KnownDevices::learn(problem.table, problem.references,
                                                        options_of(request, seed)));
  const auto chosen = known.choose(designs_of(problem.table, problem.measured), request.samples);
  FLEETFIT_ASSIGN(auto fit, fit_rows(problem, known, picked(problem.measured, chosen)));
  RehearsedTrial outcome{.trial = {}, .fit = std::move(fit), .predictions = {}};
  outcome.predictions.resize(problem.table.designs.size());
  outcome.fit.model->predict(problem.table.designs, outcome.predictions);
  FLEETFIT_ASSIGN(outcome.trial, compare(problem, outcome.predictions, outcome.fit.rows));
  outcome.trial.seed = seed;
  return outcome;
}

FewShotReport empty_report(const Problem& problem, const FewShotRequest& request) {
  return {.space = problem.table.space,
          .target = request.target,
          .references = request.references,
          .reference_samples = request.reference_samples,
          .designs = problem.table.designs};
}

void tell_model(const Problem& problem, const Fit& fit, std::size_t wanted, FewShotReport& report) {
  report.measurements = fit.rows.size();
  report.verdict = fit.model->verdict();
  if (report.verdict->enough) return;
  const auto open =
      rows_without(problem.table, problem.is_new_device() ? problem.measured : fit.rows);
  const auto next = fit.model->next(designs_of(problem.table, open), wanted);
  report.measure_next = texts_of(problem.table, picked(open, next));
}

Result<FewShotReport> rehearse(const Problem& problem, const FewShotRequest& request) {
  if (problem.measured.size() < request.samples) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} has {} measured designs, --samples asks for {}", problem.place(),
                            problem.measured.size(), request.samples));
  }
  std::vector<std::optional<Result<RehearsedTrial>>> outcomes(request.trials);
  core::ThreadPool pool(request.threads);
  pool.parallel_for(request.trials, [&](std::size_t i) {
    auto& outcome = outcomes[i].emplace(run_trial(problem, request, request.seed + i));
    if (i == 0 || !outcome) return;
    outcome->predictions = {};  // only those of the first are reported
    outcome->fit = {};
  });
  FewShotReport report = empty_report(problem, request);
  for (const auto& outcome : outcomes) {
    FLEETFIT_TRY(*outcome);
    report.trials.push_back((*outcome)->trial);
  }
  RehearsedTrial& first = **outcomes.front();
  report.predictions = std::move(first.predictions);
  report.samples_chosen = texts_of(problem.table, first.fit.rows);
  tell_model(problem, first.fit, kNext, report);
  return report;
}

/// All measured cells are used; what is missing is named.
Result<FewShotReport> extend(const Problem& problem, const FewShotRequest& request) {
  FLEETFIT_ASSIGN(const auto known, KnownDevices::learn(problem.table, problem.references,
                                                        options_of(request, request.seed)));
  FewShotReport report = empty_report(problem, request);
  report.samples_chosen = texts_of(problem.table, problem.measured);
  report.measurements = problem.measured.size();
  const std::size_t missing = request.samples - std::min(request.samples, problem.measured.size());
  if (problem.measured.size() < kFewestSamples) {
    const auto open = rows_without(problem.table, problem.measured);
    const auto next = known.choose(designs_of(problem.table, open), missing);
    report.measure_next = texts_of(problem.table, picked(open, next));
    return report;
  }
  FLEETFIT_ASSIGN(const auto fit, fit_rows(problem, known, problem.measured));
  report.predictions.resize(problem.table.designs.size());
  fit.model->predict(problem.table.designs, report.predictions);
  tell_model(problem, fit, missing > 0 ? missing : kNext, report);
  return report;
}

}  // namespace

FewShotTrial FewShotReport::mean() const {
  const auto average = [this](double FewShotTrial::* value) {
    double sum = 0;
    for (const auto& trial : trials) sum += trial.*value;
    return trials.empty() ? std::numeric_limits<double>::quiet_NaN()
                          : sum / static_cast<double>(trials.size());
  };
  return {.seed = 0,
          .srcc = average(&FewShotTrial::srcc),
          .mape = average(&FewShotTrial::mape),
          .coverage90 = average(&FewShotTrial::coverage90)};
}

Result<FewShotReport> transfer_few_shot(const FewShotRequest& request) {
  FLEETFIT_ASSIGN(const auto problem, read_problem(request));
  return problem.is_new_device() ? extend(problem, request) : rehearse(problem, request);
}

namespace {

using nlohmann::ordered_json;

ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json();
}

std::string predictions_csv(const FewShotReport& report) {
  auto header = report.space->columns();
  header.push_back(report.target);
  header.push_back(report.target + " low90");
  header.push_back(report.target + " high90");
  core::CsvWriter writer(header);
  for (std::size_t i = 0; i < report.predictions.size(); ++i) {
    std::vector<core::CsvCell> cells;
    for (const auto& cell : report.space->cells(report.designs[i])) cells.emplace_back(cell);
    const auto& [ms, low, high] = report.predictions[i];
    for (const double number : {ms, low, high}) cells.emplace_back(number);
    writer.add_row(cells);
  }
  return writer.text();
}

}  // namespace

ordered_json to_json(const FewShotReport& report) {
  const FewShotTrial mean = report.mean();
  const auto& verdict = report.verdict;
  ordered_json trials = ordered_json::array();
  for (const auto& trial : report.trials) {
    trials.push_back({{"seed", trial.seed},
                      {"srcc", trial.srcc},
                      {"mape", finite_or_null(trial.mape)},
                      {"coverage90", finite_or_null(trial.coverage90)}});
  }
  return {{"target", report.target},
          {"references", report.references},
          {"reference_samples", report.reference_samples},
          {"measurements", report.measurements},
          {"srcc", finite_or_null(mean.srcc)},
          {"mape", finite_or_null(mean.mape)},
          {"coverage90", finite_or_null(mean.coverage90)},
          {"expected_srcc", verdict ? ordered_json(verdict->expected_srcc) : ordered_json()},
          {"ceiling", verdict ? ordered_json(verdict->ceiling) : ordered_json()},
          {"noise_ms", verdict ? ordered_json(verdict->noise_ms) : ordered_json()},
          {"enough", verdict && verdict->enough},
          {"samples_chosen", report.samples_chosen},
          {"measure_next", report.measure_next},
          {"trials", std::move(trials)}};
}

Status write_few_shot(const FewShotReport& report, const std::filesystem::path& path) {
  if (path.extension() == ".csv") return core::write_file(path, predictions_csv(report));
  ordered_json document{{"format", "fleetfit-fewshot"}, {"version", 1}};
  document["space"] = report.space->name();
  document.update(to_json(report));
  auto& predictions = document["predictions"] = ordered_json::array();
  for (std::size_t i = 0; i < report.predictions.size(); ++i) {
    const auto& [ms, low, high] = report.predictions[i];
    predictions.push_back({{"design", report.space->format(report.designs[i])},
                           {"latency_ms", ms},
                           {"interval90", {low, high}}});
  }
  return core::write_file(path, core::format_json(document));
}

}  // namespace fleetfit::app
