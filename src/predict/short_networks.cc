#include "predict/short_networks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fleetfit/core/statistics.h"

namespace fleetfit::predict {
namespace {

// Fewer networks than this on one side tell chance from a law no better than a guess does.
constexpr std::size_t kLeastNetworksForLaw = 20;
// Data in caches makes nothing faster than this: half of the length, an eighth less time.
constexpr double kMostPower = 0.2;
// What makes half of the length three thousandths quicker is nothing.
constexpr double kLeastPower = 0.005;

/// The networks outside of one fold; all of them for -1.
struct Pairs {
  std::vector<double> predicted;
  std::vector<double> measured;
};

Pairs outside(const HeldOutNetworks& networks, int fold) {
  Pairs pairs;
  for (std::size_t n = 0; n < networks.fold.size(); ++n) {
    if (networks.fold[n] == fold) continue;
    pairs.predicted.push_back(networks.predicted_ms[n]);
    pairs.measured.push_back(networks.measured_ms[n]);
  }
  return pairs;
}

double error_of(const ShortNetworks& law, const Pairs& pairs) {
  double sum = 0;
  for (std::size_t n = 0; n < pairs.predicted.size(); ++n) {
    const double predicted = pairs.predicted[n];
    sum += std::abs(predicted * law.factor(predicted) / pairs.measured[n] - 1);
  }
  return sum;
}

/// The slope of the logarithms' errors below a latency, beside a common error of all networks,
/// which is none of the short ones' and stays as it is.
double power_below(double below_ms, const Pairs& pairs) {
  const auto count = static_cast<double>(pairs.predicted.size());
  double z = 0;
  double r = 0;
  double zz = 0;
  double zr = 0;
  for (std::size_t n = 0; n < pairs.predicted.size(); ++n) {
    const double short_by = std::min(0.0, std::log(pairs.predicted[n] / below_ms));
    const double error = std::log(pairs.measured[n] / pairs.predicted[n]);
    z += short_by;
    r += error;
    zz += short_by * short_by;
    zr += short_by * error;
  }
  const double spread = zz - z * z / count;
  const double power = spread > 0 ? (zr - z * r / count) / spread : 0;
  return power < kLeastPower ? 0 : std::min(power, kMostPower);
}

// The law with the least error of those that differ in what they call short. There is no test
// whether it is there at all: thirty networks hardly ever prove it, most of them being long, but a
// slope that chance made is small, and going without one costs much more where there is a law.
ShortNetworks fit(const Pairs& pairs) {
  ShortNetworks best;
  double least = std::numeric_limits<double>::infinity();
  const double shortest = *std::ranges::min_element(pairs.predicted);
  for (const double share : {0.2, 0.3, 0.4, 0.5, 0.6, 0.7}) {
    const double below = *core::quantile(pairs.predicted, share);
    const ShortNetworks law{
        .below_ms = below, .least_ms = shortest, .power = power_below(below, pairs)};
    const double error = error_of(law, pairs);
    if (error >= least) continue;
    least = error;
    best = law;
  }
  return best;
}

}  // namespace

FittedShortNetworks fit_short_networks(const HeldOutNetworks& networks) {
  const std::size_t count = networks.fold.size();
  FittedShortNetworks fitted{.law = {}, .held_out_factor = std::vector<double>(count, 1.0)};
  if (count < kLeastNetworksForLaw) return fitted;
  fitted.law = fit(outside(networks, -1));
  for (int fold = 0; fold < networks.folds; ++fold) {
    const auto law = fit(outside(networks, fold));
    for (std::size_t n = 0; n < count; ++n)
      if (networks.fold[n] == fold)
        fitted.held_out_factor[n] = law.factor(networks.predicted_ms[n]);
  }
  return fitted;
}

}  // namespace fleetfit::predict
