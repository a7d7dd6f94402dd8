#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/report/chart.h"
#include "fleetfit/report/html.h"

namespace fleetfit::app {
namespace {

using tune::InferenceTrial;

std::string about(const InferenceTrial& trial) {
  const auto& response = trial.response;
  auto text = fmt::format("{}: {:.4g} ms a run, mean response {:.4g} ms, up to {:.4g} samples/s",
                          tune::describe(trial.setting), trial.cost->cost.latency_ms,
                          response.mean_ms, response.capacity());
  if (response.energy_mj) text += fmt::format(", {:.3g} mJ", *response.energy_mj);
  if (response.saturated) text += "; more samples come than are answered";
  return text;
}

/// Trials that differ in their batch alone, by batch.
std::vector<std::vector<const InferenceTrial*>> lines_of(const tune::InferenceResult& result) {
  std::vector<std::vector<const InferenceTrial*>> lines;
  const auto same_line = [](const InferenceTrial& a, const InferenceTrial& b) {
    auto setting = a.setting;
    setting.batch = b.setting.batch;
    return setting == b.setting;
  };
  for (const auto& trial : result.trials) {
    if (!trial.cost || !trial.asked) continue;
    const auto line = std::ranges::find_if(
        lines, [&](const auto& known) { return same_line(trial, *known.front()); });
    (line == lines.end() ? lines.emplace_back() : *line).push_back(&trial);
  }
  for (auto& line : lines)
    std::ranges::sort(line, {}, [](const auto* trial) { return trial->setting.batch; });
  return lines;
}

/// What one chart shows over the batch.
struct Quantity {
  std::string label;
  std::function<double(const InferenceTrial&)> value;
};

std::string chart_of(const tune::InferenceResult& result, const Quantity& quantity) {
  const auto lines = lines_of(result);
  if (lines.empty()) return report::paragraph("Nothing could be priced.");
  report::Extent batch;
  report::Extent value;
  for (const auto& line : lines) {
    for (const auto* trial : line) {
      batch.hold(static_cast<double>(trial->setting.batch));
      value.hold(quantity.value(*trial));
    }
  }
  report::Chart chart({"batch", 0.9, 1.2 * batch.high},
                      {quantity.label, 0.8 * value.low, 1.25 * value.high});
  for (const auto& line : lines) {
    std::vector<report::ChartPoint> points;
    for (const auto* trial : line)
      points.push_back({static_cast<double>(trial->setting.batch), quantity.value(*trial)});
    chart.line(points, "line", tune::describe(line.front()->setting));
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool best = result.best && line[i] == &result.trials[*result.best];
      chart.point(points[i], best ? "filled" : "hollow", about(*line[i]),
                  tune::describe(line[i]->setting));
    }
  }
  return report::wide(chart.svg());
}

void add_row(report::Table& table, const InferenceTrial& trial, bool best) {
  const auto name = report::escape_html(tune::describe(trial.setting));
  if (!trial.cost) return table.add({name, report::escape_html(trial.reason)});
  const auto& response = trial.response;
  table.add({name + (best ? ", the best" : ""),
             fmt::format("{:.4g} ± {:.2g}", trial.cost->cost.latency_ms, trial.cost->spread_ms),
             fmt::format("{:.4g}", response.mean_ms), fmt::format("{:.4g}", response.p95_ms),
             fmt::format("{:.4g}", response.p99_ms), fmt::format("{:.4g}", response.capacity()),
             response.energy_mj ? fmt::format("{:.3g}", *response.energy_mj) : "",
             response.saturated ? "saturated" : report::escape_html(trial.cost->note)});
}

std::string table_of(const tune::InferenceResult& result) {
  report::Table table({"setting", "a run, ms", "mean response, ms", "p95", "p99",
                       "samples/s at most", "mJ a sample", report::words("")});
  for (std::size_t i = 0; i < result.trials.size(); ++i)
    if (result.trials[i].asked) add_row(table, result.trials[i], result.best == i);
  return table.html();
}

std::string confirmed_table(const ConfirmedInference& confirmed) {
  report::Table table({"", "mean response, ms", "p95", "p99", "samples/s", "mJ a sample"});
  const auto add = [&table](const char* name, const tune::Response& r) {
    table.add({name, fmt::format("{:.4g}", r.mean_ms), fmt::format("{:.4g}", r.p95_ms),
               fmt::format("{:.4g}", r.p99_ms), fmt::format("{:.4g}", r.throughput),
               r.energy_mj ? fmt::format("{:.3g}", *r.energy_mj) : ""});
  };
  add("expected", confirmed.expected);
  add("real", confirmed.real);
  return report::paragraph(fmt::format("A real run on {}: off by {:.1f} %.",
                                       report::escape_html(confirmed.device),
                                       100 * confirmed.error())) +
         table.html();
}

std::string section_of(const DeviceInference& inference) {
  const auto& result = inference.result;
  const auto first = result.best ? about(result.trials[*result.best])
                                 : std::string("nothing could be recommended");
  const bool predicted = result.best && result.trials[*result.best].cost->predicted;
  const auto about_all =
      fmt::format("{}. {}; {} of {} settings were priced{}.", report::escape_html(first),
                  predicted ? "Predicted" : "Measured", result.trials.size(), result.settings,
                  inference.known ? ", earlier" : fmt::format(", in {:.3g} s", result.elapsed_s));
  return report::section(
      inference.device, about_all,
      chart_of(result, {"mean response, ms",
                        [](const InferenceTrial& trial) { return trial.response.mean_ms; }}) +
          chart_of(result,
                   {"samples per second at most",
                    [](const InferenceTrial& trial) { return trial.response.capacity(); }}) +
          table_of(result));
}

}  // namespace

std::string inference_page(std::string_view model, const tune::InferenceStudy& study,
                           const std::vector<DeviceInference>& inferences,
                           const std::vector<ConfirmedInference>& confirmed) {
  const auto title = fmt::format("How to run {}", model);
  auto body = report::paragraph(
      fmt::format("Scenario {}.", report::escape_html(tune::describe(study.scenario))));
  for (const auto& inference : inferences) {
    body += section_of(inference);
    for (const auto& real : confirmed)
      if (real.device == inference.device) body += confirmed_table(real);
  }
  return report::html_page(title, body);
}

}  // namespace fleetfit::app
