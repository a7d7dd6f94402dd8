#include "fleetfit/app/transferring.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/report/heat_map.h"
#include "fleetfit/report/html.h"

namespace fleetfit::app {
namespace {

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

std::string agreement_map(const transfer::CorrelationMatrix& matrix) {
  const auto order = similar_beside(matrix);
  std::vector<std::string> names;
  for (const auto device : order) names.push_back(matrix.devices[device]);
  return report::heat_map(names, [&](std::size_t row, std::size_t column) {
    const auto a = order[row];
    const auto b = order[column];
    const double srcc = matrix.srcc[a][b];
    return report::HeatCell{
        .strength = std::clamp((srcc - kDull) / (1 - kDull), 0.0, 1.0),
        .stands_out = srcc >= 0.9,
        .words = fmt::format("{:.2f}", srcc),
        .title = fmt::format("{} and {}: {:.4f}, from {} designs", matrix.devices[a],
                             matrix.devices[b], srcc, matrix.designs[a][b])};
  });
}

std::string ranking_table(const transfer::CorrelationMatrix& matrix) {
  report::Table table({"device", "mean agreement with the others"});
  for (const auto& proxy : transfer::rank_proxies(matrix))
    table.add({report::escape_html(proxy.device), fmt::format("{:.3f}", proxy.mean_srcc)});
  return report::section("Proxies", table.html());
}

std::string roofline_table(const CorrelationReport& found) {
  report::Table table({"devices", "ridge, FLOP/byte", "bound by arithmetic", "same bound on both",
                       "agreement by peaks", "measured", report::words("")});
  for (const auto& pair : found.rooflines) {
    const auto& compared = pair.comparison;
    table.add({report::escape_html(fmt::format("{} and {}", pair.a.device, pair.b.device)),
               fmt::format("{:.1f} / {:.1f}", pair.a.peaks.ridge(), pair.b.peaks.ridge()),
               fmt::format("{:.0f} % / {:.0f} %", 100 * compared.compute_bound_a,
                           100 * compared.compute_bound_b),
               fmt::format("{:.0f} %", 100 * compared.same_bound),
               fmt::format("{:.3f}", compared.srcc),
               pair.srcc ? fmt::format("{:.3f}", *pair.srcc) : "",
               report::escape_html(transfer::explain(compared))});
  }
  return report::section("Why: what bounds the designs", table.html());
}

}  // namespace

std::string correlation_page(const CorrelationReport& found) {
  const auto title = fmt::format("Agreement of {} devices on designs of {}",
                                 found.matrix.devices.size(), found.space);
  const auto summary = fmt::format(
      "Spearman's rank correlation of latencies, {} designs{}. From 0.9 on (green), the best "
      "designs of one device are those of the other.",
      found.designs,
      found.empty_cells == 0
          ? ""
          : fmt::format(", {} cells are empty and left out by pairs", found.empty_cells));
  return report::html_page(title, report::paragraph(summary) + agreement_map(found.matrix) +
                                      roofline_table(found) + ranking_table(found.matrix));
}

}  // namespace fleetfit::app
