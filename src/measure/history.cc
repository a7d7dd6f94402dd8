#include "fleetfit/measure/history.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <map>

namespace fleetfit::measure {
namespace {

constexpr int kLooksBack = 3;

bool meet(const core::Interval& a, const core::Interval& b) {
  return a.low <= b.high && b.low <= a.high;
}

// Relative, on both sides of the median: a session half as fast is as far away as one twice as
// fast.
core::Interval widened(const Latency& latency, const SessionSpread& spread) {
  const double between = student95(spread.freedom) * spread.relative;
  const double below = std::log(latency.median_ms / latency.session_ci95_ms.low);
  const double above = std::log(latency.session_ci95_ms.high / latency.median_ms);
  return {latency.median_ms * std::exp(-std::hypot(below, between)),
          latency.median_ms * std::exp(std::hypot(above, between))};
}

const EarlierMeasurement* first_unlike(const core::Interval& interval, std::string_view model,
                                       std::span<const EarlierMeasurement> earlier) {
  int looked_at = 0;
  for (const auto& one : earlier) {
    if (one.model != model) continue;
    if (!meet(one.ci95_ms, interval)) return &one;
    if (++looked_at == kLooksBack) break;
  }
  return nullptr;
}

std::string disagreement(const Latency& latency, const EarlierMeasurement& earlier) {
  const auto date = std::chrono::system_clock::to_time_t(earlier.started);
  return fmt::format(
      "takes {:.4g} ms ({:.4g} to {:.4g}), but took {:.4g} ms ({:.4g} to {:.4g}) on "
      "{:%Y-%m-%d at %H:%M} UTC: the machine is in another state than then",
      latency.median_ms, latency.ci95_ms.low, latency.ci95_ms.high, earlier.median_ms,
      earlier.ci95_ms.low, earlier.ci95_ms.high, fmt::gmtime(date));
}

}  // namespace

SessionSpread session_spread(std::span<const EarlierMeasurement> earlier) {
  std::map<std::string_view, std::vector<double>> logs;
  for (const auto& one : earlier) logs[one.model].push_back(std::log(one.median_ms));
  SessionSpread spread;
  double squares = spread.freedom * spread.relative * spread.relative;
  for (const auto& [model, values] : logs) {
    const auto variance = core::variance(values);
    if (!variance) continue;  // measured once: no difference was seen
    const auto differences = static_cast<double>(values.size() - 1);
    squares += *variance * differences;
    spread.freedom += differences;
  }
  spread.relative = std::sqrt(squares / spread.freedom);
  return spread;
}

void compare_with_history(Measurement& measurement, std::string_view model,
                          std::span<const EarlierMeasurement> earlier,
                          const SessionSpread& spread) {
  if (!measurement.latency || !(measurement.latency->session_ci95_ms.low > 0)) return;
  auto& latency = *measurement.latency;
  latency.ci95_ms = widened(latency, spread);
  if (measurement.status != MeasurementStatus::ok) return;
  const auto* other = first_unlike(latency.ci95_ms, model, earlier);
  if (other == nullptr) return;
  measurement.status = MeasurementStatus::unstable;
  measurement.reason = disagreement(latency, *other);
  auto circumstances = circumstances_of(measurement);
  circumstances.unlike_before = true;
  keep_circumstances(measurement, circumstances);
}

}  // namespace fleetfit::measure
