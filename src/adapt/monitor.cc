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

// Conditions are worked out again so often while all runs of a window are replaced.
constexpr std::size_t kUpdates = 64;

// A run that takes so many times as long as half of them did not have the CPU all the while.
constexpr double kInterrupted = 2;

}  // namespace

double Conditions::longest_within(double limit_ms, double caution) const {
  const double calm = limit_ms / calm_ratio;
  if (interruptions == 0) return calm;
  const double seldom_interrupted = rare * (1 - caution) / interruptions;
  const double quick_though_interrupted = (limit_ms - interruption_ms) / calm_ratio;
  return std::min(calm, std::max(seldom_interrupted, quick_though_interrupted));
}

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
  window_.push_back({.time_ms = time_ms, .estimated_ms = estimated_ms, .ratio = ratio});
  forget_old_runs(time_ms);
  const bool changed = conditions_ && forget_runs_before_change();
  ++runs_since_;
  if (!conditions_ && window_.size() < options_.first_runs) return;
  if (conditions_ && !changed && runs_since_ * kUpdates < window_.size()) return;
  conditions_ = conditions_of_window();
  runs_since_ = 0;
}

void LatencyMonitor::forget_old_runs(double time_ms) {
  while (window_.size() > options_.most_runs) window_.pop_front();
  const double oldest = time_ms - options_.window_ms;
  while (window_.size() > options_.fewest_runs && window_.front().time_ms < oldest)
    window_.pop_front();
}

bool LatencyMonitor::forget_runs_before_change() {
  const auto change = std::ranges::find_if(tests_, [&](const ChangeTest& test) {
    return window_.size() > test.runs && shows_change(test);
  });
  if (change == tests_.end()) return false;
  window_.erase(window_.begin(), window_.end() - static_cast<std::ptrdiff_t>(change->runs));
  return true;
}

bool LatencyMonitor::shows_change(const ChangeTest& test) const {
  std::size_t slower = 0;
  std::size_t faster = 0;
  for (auto run = window_.end() - static_cast<std::ptrdiff_t>(test.runs); run != window_.end();
       ++run) {
    if (run->ratio > conditions_->ratio * options_.jump) ++slower;
    if (run->ratio * options_.jump < conditions_->ratio) ++faster;
  }
  return slower >= test.slower || faster >= test.faster;
}

Conditions LatencyMonitor::conditions_of_window() const {
  std::vector<double> ratios(window_.size());
  std::ranges::transform(window_, ratios.begin(), &Run::ratio);
  std::ranges::sort(ratios);
  const double usual = core::quantile_of_sorted(ratios, 0.5);
  const auto calm = std::ranges::upper_bound(ratios, kInterrupted * usual);
  Conditions conditions{
      .ratio = core::quantile_of_sorted(ratios, options_.quantile),
      .calm_ratio = core::quantile_of_sorted({ratios.begin(), calm}, options_.quantile),
      .rare = 1 - options_.quantile};
  if (calm == ratios.end()) return conditions;
  double estimated_ms = 0;
  for (const auto& run : window_) {
    estimated_ms += run.estimated_ms;
    conditions.interruption_ms =
        std::max(conditions.interruption_ms, (run.ratio - usual) * run.estimated_ms);
  }
  conditions.interruptions = static_cast<double>(ratios.end() - calm) / estimated_ms;
  return conditions;
}

}  // namespace fleetfit::adapt
