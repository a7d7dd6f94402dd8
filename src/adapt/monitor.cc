#include "fleetfit/adapt/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "fleetfit/core/statistics.h"

namespace fleetfit::adapt {
namespace {

// How often runs under unchanged conditions may look like a change. Looked at after every run, but
// only runs that differ by the factor `jump` count, which are far fewer than what is assumed here.
constexpr double kFalseAlarm = 1e-3;

/// The smallest number of hits among `runs` that has at most this probability, if each run is a hit
/// with `chance`; more than `runs` if there is none.
std::size_t unlikely_hits(std::size_t runs, double chance) {
  const auto n = static_cast<double>(runs);
  double tail = 0;
  double ways = 1;  // to have one hit less than `hits`
  std::size_t hits = runs + 1;
  while (hits > 0) {
    const auto k = static_cast<double>(hits - 1);
    tail += ways * std::pow(chance, k) * std::pow(1 - chance, n - k);
    if (tail > kFalseAlarm) break;
    ways *= k / (n - k + 1);
    --hits;
  }
  return hits;
}

}  // namespace

Result<double> parse_tail(std::string_view text) {
  if (text == "median") return 0.5;
  constexpr double kPercent = 100;
  double percent = 0;
  const char* end = text.data() + text.size();
  if (text.size() > 1 && text.front() == 'p') {
    const auto read = std::from_chars(text.data() + 1, end, percent);
    if (read.ec == std::errc() && read.ptr == end && percent > 0 && percent < kPercent)
      return percent / kPercent;
  }
  return fail(ErrorCode::invalid_input,
              fmt::format("tail: \"{}\" is neither median nor a percentile such as p95", text));
}

LatencyMonitor::LatencyMonitor(const MonitorOptions& options) : options_(options) {
  // A tail of too few runs would be just the slowest of them.
  const auto for_tail = static_cast<std::size_t>(std::ceil(2 / (1 - options.quantile)));
  options_.fewest_runs = std::max(options.fewest_runs, for_tail);
  options_.most_runs = std::max(options.most_runs, options_.fewest_runs);
  constexpr std::array<std::size_t, 5> kRuns = {3, 5, 10, 20, 40};
  for (const std::size_t runs : kRuns) {
    tests_.push_back({.runs = runs,
                      .slower = unlikely_hits(runs, 1 - options.quantile),
                      .faster = unlikely_hits(runs, options.quantile)});
  }
}

void LatencyMonitor::record(double time_ms, double actual_ms, double estimated_ms) {
  const double ratio = actual_ms / estimated_ms;
  if (!std::isfinite(time_ms) || !std::isfinite(ratio) || ratio <= 0) return;
  window_.push_back({time_ms, ratio});
  forget_old_runs(time_ms);
  if (ratio_) forget_runs_before_change();
  if (ratio_ || window_.size() >= options_.first_runs) ratio_ = quantile_of_window();
}

void LatencyMonitor::forget_old_runs(double time_ms) {
  while (window_.size() > options_.most_runs) window_.pop_front();
  const double oldest = time_ms - options_.window_ms;
  while (window_.size() > options_.fewest_runs && window_.front().time_ms < oldest)
    window_.pop_front();
}

void LatencyMonitor::forget_runs_before_change() {
  const auto change = std::ranges::find_if(tests_, [&](const ChangeTest& test) {
    return window_.size() > test.runs && shows_change(test);
  });
  if (change == tests_.end()) return;
  window_.erase(window_.begin(), window_.end() - static_cast<std::ptrdiff_t>(change->runs));
}

bool LatencyMonitor::shows_change(const ChangeTest& test) const {
  std::size_t slower = 0;
  std::size_t faster = 0;
  for (auto run = window_.end() - static_cast<std::ptrdiff_t>(test.runs); run != window_.end();
       ++run) {
    if (run->ratio > *ratio_ * options_.jump) ++slower;
    if (run->ratio * options_.jump < *ratio_) ++faster;
  }
  return slower >= test.slower || faster >= test.faster;
}

double LatencyMonitor::quantile_of_window() const {
  std::vector<double> ratios(window_.size());
  std::ranges::transform(window_, ratios.begin(), &Run::ratio);
  return *core::quantile(ratios, options_.quantile);
}

}  // namespace fleetfit::adapt
