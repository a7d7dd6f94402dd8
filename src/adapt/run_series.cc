#include "adapt/run_series.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fleetfit/core/statistics.h"

namespace fleetfit::adapt {
namespace {

constexpr int kMostRuns = 10'000;
// Runs that lie beyond a tail for it to be known at all.
constexpr double kRunsBeyond = 10;

double median_of(std::span<const double> values) { return core::median(values).value_or(0); }

}  // namespace

int RunSeries::runs_per_round(const TimingOptions& options) const {
  if (!(last_run_ms_ > 0)) return 1;
  const double for_time = options.round_ms / last_run_ms_;
  const double for_tail =
      options.quantile > 0.5 ? kRunsBeyond / (1 - options.quantile) / options.rounds : 1;
  return static_cast<int>(
      std::clamp(std::ceil(std::max(for_time, for_tail)), 1.0, double{kMostRuns}));
}

void RunSeries::add_round(std::span<const double> run_ms) {
  round_medians_.push_back(median_of(run_ms));
  run_ms_.insert(run_ms_.end(), run_ms.begin(), run_ms.end());
  last_run_ms_ = std::max(round_medians_.back(), 1e-3);
}

void RunSeries::add_nodes(std::vector<NodeTime> nodes) {
  if (!node_rounds_.empty() && nodes.size() != node_rounds_.front().size()) return;
  node_rounds_.push_back(std::move(nodes));
}

NetworkTime RunSeries::result(const TimingOptions& options) const {
  NetworkTime time;
  time.ms = options.quantile > 0.5 ? core::quantile(run_ms_, options.quantile).value_or(0)
                                   : median_of(round_medians_);
  if (node_rounds_.empty()) return time;
  time.nodes = node_rounds_.front();
  std::vector<double> rounds(node_rounds_.size());
  for (std::size_t i = 0; i < time.nodes.size(); ++i) {
    std::ranges::transform(node_rounds_, rounds.begin(),
                           [i](const auto& nodes) { return nodes[i].ms; });
    time.nodes[i].ms = median_of(rounds);
  }
  return time;
}

}  // namespace fleetfit::adapt
