#include "fleetfit/transfer/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fleetfit/core/statistics.h"

namespace fleetfit::transfer {
namespace {

constexpr double kNearlyAll = 0.95;

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

Status check(std::span<const Work> designs, const Peaks& a, const Peaks& b) {
  for (const double peak : {a.gflops, a.gbytes_per_second, b.gflops, b.gbytes_per_second})
    if (!is_positive(peak))
      return fail(ErrorCode::invalid_input, fmt::format("a peak of {} is not positive", peak));
  if (designs.size() < 2) return fail(ErrorCode::invalid_input, "fewer than two designs");
  for (const auto& work : designs)
    if (!is_positive(work.flops) || !is_positive(work.bytes))
      return fail(ErrorCode::invalid_input, "a design without FLOPs or bytes");
  return {};
}

double least_time(const Work& work, const Peaks& peaks) {
  return std::max(work.flops / peaks.gflops, work.bytes / peaks.gbytes_per_second);
}

}  // namespace

Result<RooflineComparison> compare_rooflines(std::span<const Work> designs, const Peaks& a,
                                             const Peaks& b) {
  FLEETFIT_TRY(check(designs, a, b));
  RooflineComparison result{.intensity_low = std::numeric_limits<double>::infinity()};
  std::vector<double> times_a;
  std::vector<double> times_b;
  const double share = 1 / static_cast<double>(designs.size());
  for (const auto& work : designs) {
    const bool computes_a = work.intensity() >= a.ridge();
    const bool computes_b = work.intensity() >= b.ridge();
    if (computes_a) result.compute_bound_a += share;
    if (computes_b) result.compute_bound_b += share;
    if (computes_a == computes_b) result.same_bound += share;
    result.intensity_low = std::min(result.intensity_low, work.intensity());
    result.intensity_high = std::max(result.intensity_high, work.intensity());
    times_a.push_back(least_time(work, a));
    times_b.push_back(least_time(work, b));
  }
  FLEETFIT_ASSIGN(result.srcc, core::spearman(times_a, times_b));
  return result;
}

std::string explain(const RooflineComparison& comparison) {
  const double both_compute = std::min(comparison.compute_bound_a, comparison.compute_bound_b);
  const double both_memory = 1 - std::max(comparison.compute_bound_a, comparison.compute_bound_b);
  if (both_compute >= kNearlyAll)
    return "arithmetic bounds nearly all designs on both devices: they should agree on the order";
  if (both_memory >= kNearlyAll)
    return "memory bounds nearly all designs on both devices: they should agree on the order";
  if (comparison.same_bound >= kNearlyAll)
    return "the same bounds nearly every design on both devices, but not the same for all designs: "
           "the order may differ";
  return "different things bound many designs on the two devices: the order may well differ";
}

}  // namespace fleetfit::transfer
