#include "app/transfer/correlation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/svg_chart.h"

namespace fleetfit::app {
namespace {

constexpr double kCell = 30;
constexpr double kNames = 130;
constexpr double kWidthOfLetter = 6.6;
constexpr double kDull = 0.5;  // correlations from here down look alike

/// Each device is followed by the one that agrees with it best, beginning with the best proxy.
std::vector<std::size_t> similar_beside(const transfer::CorrelationMatrix& matrix) {
  const auto ranking = transfer::rank_proxies(matrix);
  std::vector<std::size_t> order;
  std::vector<bool> is_placed(matrix.devices.size(), false);
  auto next = static_cast<std::size_t>(std::ranges::find(matrix.devices, ranking.front().device) -
                                       matrix.devices.begin());
  while (order.size() < matrix.devices.size()) {
    order.push_back(next);
    is_placed[next] = true;
    double best = -2;
    for (std::size_t i = 0; i < is_placed.size(); ++i) {
      if (is_placed[i] || matrix.srcc[order.back()][i] <= best) continue;
      best = matrix.srcc[order.back()][i];
      next = i;
    }
  }
  return order;
}

std::string cell(const transfer::CorrelationMatrix& matrix, std::size_t a, std::size_t b, double x,
                 double y) {
  const double srcc = matrix.srcc[a][b];
  const double strength = std::clamp((srcc - kDull) / (1 - kDull), 0.0, 1.0);
  const auto title = fmt::format("{} and {}: {:.4f}, from {} designs", matrix.devices[a],
                                 matrix.devices[b], srcc, matrix.designs[a][b]);
  return fmt::format(
      "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
      "style=\"fill:var(--{});fill-opacity:{:.3f}\" stroke=\"var(--page)\"/>"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" style=\"font-size:10px;fill:var(--ink)\">"
      "{:.2f}</text></g>\n",
      escape_html(title), x, y, kCell, kCell, srcc >= 0.9 ? "three" : "one",
      0.06 + 0.8 * strength * strength, x + kCell / 2, y + kCell / 2 + 4, srcc);
}

std::string names(const transfer::CorrelationMatrix& matrix, const std::vector<std::size_t>& order,
                  double margin) {
  std::string text;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double middle = margin + (static_cast<double>(i) + 0.5) * kCell;
    const auto name = escape_html(matrix.devices[order[i]]);
    text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", margin - 6,
                        middle + 4, name);
    text += fmt::format("<text transform=\"translate({} {}) rotate(-60)\">{}</text>\n", middle + 4,
                        margin - 6, name);
  }
  return text;
}

double margin_for(const transfer::CorrelationMatrix& matrix) {
  std::size_t longest = 0;
  for (const auto& name : matrix.devices) longest = std::max(longest, name.size());
  return std::max(kNames, kWidthOfLetter * static_cast<double>(longest) + 12);
}

std::string heat_map(const transfer::CorrelationMatrix& matrix) {
  const auto order = similar_beside(matrix);
  const double margin = margin_for(matrix);
  const double side = margin + kCell * static_cast<double>(order.size());
  std::string marks = names(matrix, order, margin);
  for (std::size_t row = 0; row < order.size(); ++row) {
    for (std::size_t column = 0; column < order.size(); ++column) {
      marks += cell(matrix, order[row], order[column], margin + kCell * static_cast<double>(column),
                    margin + kCell * static_cast<double>(row));
    }
  }
  return wide(
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"heat map\">\n{}</svg>\n",
                  side + 40, side, marks));
}

std::string ranking_table(const transfer::CorrelationMatrix& matrix) {
  std::string rows;
  for (const auto& proxy : transfer::rank_proxies(matrix)) {
    rows += fmt::format("<tr><td>{}</td><td>{:.3f}</td></tr>\n", escape_html(proxy.device),
                        proxy.mean_srcc);
  }
  return "<h2>Proxies</h2>\n<figure><table>\n<tr><th>device</th><th>mean agreement with the "
         "others</th>"
         "</tr>\n" +
         rows + "</table></figure>\n";
}

std::string roofline_table(const CorrelationReport& report) {
  if (report.rooflines.empty()) return "";
  std::string rows;
  for (const auto& pair : report.rooflines) {
    rows += fmt::format(
        "<tr><td>{} and {}</td><td>{:.1f} / {:.1f}</td><td>{:.0f} % / {:.0f} %</td><td>{:.0f} "
        "%</td><td>{:.3f}</td><td>{}</td><td>{}</td></tr>\n",
        escape_html(pair.a.device), escape_html(pair.b.device), pair.a.peaks.ridge(),
        pair.b.peaks.ridge(), 100 * pair.comparison.compute_bound_a,
        100 * pair.comparison.compute_bound_b, 100 * pair.comparison.same_bound,
        pair.comparison.srcc, pair.srcc ? fmt::format("{:.3f}", *pair.srcc) : "",
        escape_html(transfer::explain(pair.comparison)));
  }
  return "<h2>Why: what bounds the designs</h2>\n<figure><table>\n<tr><th>devices</th>"
         "<th>ridge, FLOP/byte</th><th>bound by arithmetic</th><th>same bound on both</th>"
         "<th>agreement by peaks</th><th>measured</th><th></th></tr>\n" +
         rows + "</table></figure>\n";
}

}  // namespace

std::string correlation_page(const CorrelationReport& report) {
  const auto title = fmt::format("Agreement of {} devices on designs of {}",
                                 report.matrix.devices.size(), report.space);
  const auto summary = fmt::format(
      "<p>Spearman's rank correlation of latencies, {} designs{}. From 0.9 on (green), the best "
      "designs of one device are those of the other.</p>\n",
      report.designs,
      report.empty_cells == 0
          ? ""
          : fmt::format(", {} cells are empty and left out by pairs", report.empty_cells));
  return html_page(title, fmt::format("<h1>{}</h1>\n", escape_html(title)) + summary +
                              heat_map(report.matrix) + roofline_table(report) +
                              ranking_table(report.matrix));
}

}  // namespace fleetfit::app
