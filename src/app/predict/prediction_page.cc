#include "app/predict/prediction_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/svg_chart.h"

namespace fleetfit::app {
namespace {

constexpr double kMargin = 1.25;
constexpr std::size_t kFeaturesShown = 5;

Chart scatter_of(const Evaluation& evaluation) {
  double low = evaluation.networks[0].measured_ms;
  double high = low;
  for (const auto& network : evaluation.networks) {
    low = std::min({low, network.measured_ms, network.predicted_ms});
    high = std::max({high, network.measured_ms, network.predicted_ms});
  }
  low /= kMargin;
  high *= kMargin;
  Chart chart({"measured, ms", low, high}, {"predicted, ms", low, high});
  const auto diagonal = [&](double factor, std::string_view style, std::string_view title) {
    const std::vector<ChartPoint> line = {{low, low * factor}, {high, high * factor}};
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
  return wide(chart.svg());
}

std::string bar(double share) {
  return fmt::format(R"(<span class="meter" style="width:{:.1f}em"></span>)",
                     12 * std::clamp(share, 0.0, 1.0));
}

std::string kinds_table(const Evaluation& evaluation) {
  double worst = 0;
  for (const auto& kind : evaluation.kinds) worst = std::max(worst, kind.mape);
  std::string rows;
  for (const auto& kind : evaluation.kinds) {
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{:.1f} %</td><td>{:.1f} %</td><td>{}</td></tr>\n",
        escape_html(kind.kind), kind.kernels, 100 * kind.share, kind.mape,
        bar(worst > 0 ? kind.mape / worst : 0));
  }
  return "<h2>Error by kind of kernel</h2>\n<figure><table>\n<tr><th>kind</th><th>kernels</th>"
         "<th>share of time</th><th>mean error</th><th></th></tr>\n" +
         rows + "</table></figure>\n";
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
  std::string rows;
  for (const auto& kind : operators->kinds()) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        escape_html(kind.kind), escape_html(kind.method), kind.samples,
                        escape_html(features_of_kind(kind)));
  }
  return "<h2>What prices depend "
         "on</h2>\n<figure><table>\n<tr><th>kind</th><th>model</th><th>samples</th>"
         "<th>most important features</th></tr>\n" +
         rows + "</table></figure>\n";
}

std::string list_of(std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string items;
  for (const auto& line : lines) items += fmt::format("<li>{}</li>\n", escape_html(line));
  return fmt::format("<h2>{}</h2>\n<ul>\n{}</ul>\n", title, items);
}

std::string networks_table(const Evaluation& evaluation) {
  std::string rows;
  for (const auto& network : evaluation.networks) {
    rows += fmt::format(
        "<tr><td>{}</td><td>{:.4g}</td><td>{:.4g}</td><td>{:.4g} to {:.4g}</td><td>{:+.1f} %</td>"
        "<td>{}</td></tr>\n",
        escape_html(network.name), network.measured_ms, network.predicted_ms,
        network.interval90.low, network.interval90.high, 100 * network.error(), network.unpriced);
  }
  return "<details><summary>All networks as a "
         "table</summary>\n<figure><table>\n<tr><th>network</th>"
         "<th>measured ms</th><th>predicted ms</th><th>90 % interval</th><th>error</th>"
         "<th>guessed kernels</th></tr>\n" +
         rows + "</table></figure>\n</details>\n";
}

}  // namespace

std::string prediction_page(const Evaluation& evaluation,
                            const predict::KernelPredictor& predictor) {
  const auto& identity = evaluation.predictor;
  const auto title = fmt::format("Predicted latency on {}", identity.device);
  const auto summary = fmt::format(
      "<p>{} by {} from {} networks, against {} measured ones: mean error {:.1f} %, {:.0f} % "
      "within "
      "10 %, the 90 % intervals hold {:.0f} %.</p>\n",
      escape_html(identity.runtime), escape_html(identity.method), identity.networks,
      evaluation.networks.size(), evaluation.mape, 100 * evaluation.within_10pct,
      100 * evaluation.coverage90);
  return html_page(
      title, fmt::format("<h1>{}</h1>\n", escape_html(title)) + summary + scatter(evaluation) +
                 "<p>A hollow point lies outside of its interval.</p>\n" +
                 networks_table(evaluation) + kinds_table(evaluation) +
                 importance_table(predictor) + list_of("What to measure next", evaluation.advice) +
                 list_of("Left out", evaluation.left_out));
}

}  // namespace fleetfit::app
