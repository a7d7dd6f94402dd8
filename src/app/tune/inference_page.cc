#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "app/svg_chart.h"
#include "fleetfit/app/inference_tuning.h"

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
  if (lines.empty()) return "<p>Nothing could be priced.</p>\n";
  double largest = 1;
  double low = quantity.value(*lines.front().front());
  double high = low;
  for (const auto& line : lines) {
    for (const auto* trial : line) {
      largest = std::max(largest, static_cast<double>(trial->setting.batch));
      low = std::min(low, quantity.value(*trial));
      high = std::max(high, quantity.value(*trial));
    }
  }
  Chart chart({"batch", 0.9, 1.2 * largest}, {quantity.label, 0.8 * low, 1.25 * high});
  for (const auto& line : lines) {
    std::vector<ChartPoint> points;
    for (const auto* trial : line)
      points.push_back({static_cast<double>(trial->setting.batch), quantity.value(*trial)});
    chart.line(points, "line", tune::describe(line.front()->setting));
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool best = result.best && line[i] == &result.trials[*result.best];
      chart.point(points[i], best ? "filled" : "hollow", about(*line[i]),
                  tune::describe(line[i]->setting));
    }
  }
  return wide(chart.svg());
}

std::string row_of(const InferenceTrial& trial, bool best) {
  const auto name = escape_html(tune::describe(trial.setting));
  if (!trial.cost)
    return fmt::format("<tr><td>{}</td><td colspan=\"7\">{}</td></tr>\n", name,
                       escape_html(trial.reason));
  const auto& response = trial.response;
  return fmt::format(
      "<tr><td>{}{}</td><td>{:.4g} ± {:.2g}</td><td>{:.4g}</td><td>{:.4g}</td><td>{:.4g}</td>"
      "<td>{:.4g}</td><td>{}</td><td>{}</td></tr>\n",
      name, best ? ", the best" : "", trial.cost->cost.latency_ms, trial.cost->spread_ms,
      response.mean_ms, response.p95_ms, response.p99_ms, response.capacity(),
      response.energy_mj ? fmt::format("{:.3g}", *response.energy_mj) : "",
      response.saturated ? "saturated" : escape_html(trial.cost->note));
}

std::string table_of(const tune::InferenceResult& result) {
  std::string rows;
  for (std::size_t i = 0; i < result.trials.size(); ++i)
    if (result.trials[i].asked) rows += row_of(result.trials[i], result.best == i);
  return fmt::format(
      "<table>\n<tr><th>setting</th><th>a run, ms</th><th>mean response, ms</th><th>p95</th>"
      "<th>p99</th><th>samples/s at most</th><th>mJ a sample</th><th></th></tr>\n{}</table>\n",
      rows);
}

std::string confirmed_table(const ConfirmedInference& confirmed) {
  const auto row = [](std::string_view name, const tune::Response& r) {
    return fmt::format(
        "<tr><td>{}</td><td>{:.4g}</td><td>{:.4g}</td><td>{:.4g}</td><td>{:.4g}</td><td>{}</td>"
        "</tr>\n",
        name, r.mean_ms, r.p95_ms, r.p99_ms, r.throughput,
        r.energy_mj ? fmt::format("{:.3g}", *r.energy_mj) : "");
  };
  return fmt::format(
      "<p>A real run on {}: off by {:.1f} %.</p>\n<table>\n<tr><th></th><th>mean response, ms</th>"
      "<th>p95</th><th>p99</th><th>samples/s</th><th>mJ a sample</th></tr>\n{}{}</table>\n",
      escape_html(confirmed.device), 100 * confirmed.error(), row("expected", confirmed.expected),
      row("real", confirmed.real));
}

std::string section_of(const DeviceInference& inference) {
  const auto& result = inference.result;
  const auto first = result.best ? about(result.trials[*result.best])
                                 : std::string("nothing could be recommended");
  const bool predicted = result.best && result.trials[*result.best].cost->predicted;
  return fmt::format(
      "<h2>{}</h2>\n<p>{}. {}; {} of {} settings were priced{}.</p>\n{}{}{}",
      escape_html(inference.device), escape_html(first), predicted ? "Predicted" : "Measured",
      result.trials.size(), result.settings,
      inference.known ? ", earlier" : fmt::format(", in {:.3g} s", result.elapsed_s),
      chart_of(result, {"mean response, ms",
                        [](const InferenceTrial& trial) { return trial.response.mean_ms; }}),
      chart_of(result, {"samples per second at most",
                        [](const InferenceTrial& trial) { return trial.response.capacity(); }}),
      table_of(result));
}

}  // namespace

std::string inference_page(std::string_view model, const tune::InferenceStudy& study,
                           const std::vector<DeviceInference>& inferences,
                           const std::vector<ConfirmedInference>& confirmed) {
  const auto title = fmt::format("How to run {}", model);
  std::string body = fmt::format("<h1>{}</h1>\n<p>Scenario {}.</p>\n", escape_html(title),
                                 escape_html(tune::describe(study.scenario)));
  for (const auto& inference : inferences) {
    body += section_of(inference);
    for (const auto& real : confirmed)
      if (real.device == inference.device) body += confirmed_table(real);
  }
  return html_page(title, body);
}

}  // namespace fleetfit::app
