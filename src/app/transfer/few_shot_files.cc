#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/app/few_shot.h"
#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"

namespace fleetfit::app {
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
