#include "fleetfit/app/predicting.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/report/chart.h"
#include "fleetfit/report/html.h"

namespace fleetfit::app {
namespace {

constexpr double kMargin = 1.25;
constexpr std::size_t kFeaturesShown = 5;

report::Chart scatter_of(const Evaluation& evaluation) {
  report::Extent extent;
  for (const auto& network : evaluation.networks) {
    extent.hold(network.measured_ms);
    extent.hold(network.predicted_ms);
  }
  const double low = extent.low / kMargin;
  const double high = extent.high * kMargin;
  report::Chart chart({"measured, ms", low, high}, {"predicted, ms", low, high});
  const auto diagonal = [&](double factor, std::string_view style, std::string_view title) {
    const std::vector<report::ChartPoint> line = {{low, low * factor}, {high, high * factor}};
    chart.line(line, style, title);
  };
  diagonal(1, "roof", "predicted as measured");
  diagonal(1.1, "line", "10 % more than measured");
  diagonal(1 / 1.1, "line", "10 % less than measured");
  return chart;
}

std::string about(const EvaluatedNetwork& network) {
  return fmt::format(
      "{}: measured {:.4g} ms, predicted {:.4g} ms ({:+.1f} %), 90 % interval {:.4g} "
      "to {:.4g} ms{}",
      network.name, network.measured_ms, network.predicted_ms, 100 * network.error(),
      network.interval90.low, network.interval90.high,
      network.unpriced == 0 ? "" : fmt::format(", {} kernels guessed", network.unpriced));
}

bool is_held(const EvaluatedNetwork& network) {
  return network.interval90.low <= network.measured_ms &&
         network.measured_ms <= network.interval90.high;
}

std::string scatter(const Evaluation& evaluation) {
  auto chart = scatter_of(evaluation);
  for (const auto& network : evaluation.networks) {
    chart.point({network.measured_ms, network.predicted_ms}, is_held(network) ? "filled" : "hollow",
                about(network), network.name);
  }
  return report::wide(chart.svg());
}

std::string kinds_table(const Evaluation& evaluation) {
  double worst = 0;
  for (const auto& kind : evaluation.kinds) worst = std::max(worst, kind.mape);
  report::Table table({"kind", "kernels", "share of time", "mean error", report::words("")});
  for (const auto& kind : evaluation.kinds)
    table.add({report::escape_html(kind.kind), fmt::format("{}", kind.kernels),
               fmt::format("{:.1f} %", 100 * kind.share), fmt::format("{:.1f} %", kind.mape),
               report::meter(worst > 0 ? kind.mape / worst : 0)});
  return report::section("Error by kind of kernel", table.html());
}

std::string features_of_kind(const predict::KindModel& kind) {
  const auto& names = cost::feature_names(kind.kind);
  std::vector<std::pair<double, std::string>> features;
  for (std::size_t i = 0; i < std::min(names.size(), kind.importance.size()); ++i)
    features.emplace_back(kind.importance[i], names[i]);
  std::ranges::sort(features, std::ranges::greater());
  std::string text;
  for (std::size_t i = 0; i < std::min(kFeaturesShown, features.size()); ++i) {
    if (features[i].first <= 0) break;
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", features[i].second,
                        100 * features[i].first);
  }
  return text;
}

std::string importance_table(const predict::KernelPredictor& predictor) {
  const auto* operators = dynamic_cast<const predict::OperatorPredictor*>(&predictor);
  if (operators == nullptr) return "";
  report::Table table(
      {"kind", report::words("model"), "samples", report::words("most important features")});
  for (const auto& kind : operators->kinds())
    table.add({report::escape_html(kind.kind), report::escape_html(kind.method),
               fmt::format("{}", kind.samples), report::escape_html(features_of_kind(kind))});
  return report::section("What prices depend on", table.html());
}

std::string list_of(std::string_view title, const std::vector<std::string>& lines) {
  std::vector<std::string> items;
  for (const auto& line : lines) items.push_back(report::escape_html(line));
  return report::section(title, report::list(items));
}

std::string networks_table(const Evaluation& evaluation) {
  report::Table table(
      {"network", "measured ms", "predicted ms", "90 % interval", "error", "guessed kernels"});
  for (const auto& network : evaluation.networks)
    table.add({report::escape_html(network.name), fmt::format("{:.4g}", network.measured_ms),
               fmt::format("{:.4g}", network.predicted_ms),
               fmt::format("{:.4g} to {:.4g}", network.interval90.low, network.interval90.high),
               fmt::format("{:+.1f} %", 100 * network.error()),
               fmt::format("{}", network.unpriced)});
  return report::folded("All networks as a table", table.html());
}

}  // namespace

std::string prediction_page(const Evaluation& evaluation,
                            const predict::KernelPredictor& predictor) {
  const auto& identity = evaluation.predictor;
  const auto title = fmt::format("Predicted latency on {}", identity.device);
  const auto summary = fmt::format(
      "{} by {} from {} networks, against {} measured ones: mean error {:.1f} %, {:.0f} % within "
      "10 %, the 90 % intervals hold {:.0f} %.",
      report::escape_html(identity.runtime), report::escape_html(identity.method),
      identity.networks, evaluation.networks.size(), evaluation.mape, 100 * evaluation.within_10pct,
      100 * evaluation.coverage90);
  return report::html_page(
      title, report::paragraph(summary) + scatter(evaluation) +
                 report::paragraph("A hollow point lies outside of its interval.") +
                 networks_table(evaluation) + kinds_table(evaluation) +
                 importance_table(predictor) + list_of("What to measure next", evaluation.advice) +
                 list_of("Left out", evaluation.left_out));
}

}  // namespace fleetfit::app
