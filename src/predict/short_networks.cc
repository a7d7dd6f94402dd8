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
// Held-out networks have to be foretold better by more standard errors than this: else it is
// chance. Two would miss what a hundred networks tell of the engine.
constexpr double kLawIsNoChance = 1;
// Data in caches makes nothing faster than this: half of the length, a fifth less time.
constexpr double kMostPower = 0.3;

/// The networks outside of one fold; all of them for -1.
struct Pairs {
  std::vector<double> foretold;
  std::vector<double> measured;
};

Pairs outside(const ForetoldNetworks& networks, int fold) {
  Pairs pairs;
  for (std::size_t n = 0; n < networks.fold.size(); ++n) {
    if (networks.fold[n] == fold) continue;
    pairs.foretold.push_back(networks.foretold_ms[n]);
    pairs.measured.push_back(networks.measured_ms[n]);
  }
  return pairs;
}

double error_of(const ShortNetworks& law, double foretold_ms, double measured_ms) {
  return std::abs(foretold_ms * law.factor(foretold_ms) / measured_ms - 1);
}

double error_of(const ShortNetworks& law, const Pairs& pairs) {
  double sum = 0;
  for (std::size_t n = 0; n < pairs.foretold.size(); ++n)
    sum += error_of(law, pairs.foretold[n], pairs.measured[n]);
  return sum;
}

/// The slope of the logarithms' errors below a latency, beside a common error of all networks,
/// which is none of the short ones' and stays as it is.
double power_below(double below_ms, const Pairs& pairs) {
  const auto count = static_cast<double>(pairs.foretold.size());
  double z = 0;
  double r = 0;
  double zz = 0;
  double zr = 0;
  for (std::size_t n = 0; n < pairs.foretold.size(); ++n) {
    const double short_by = std::min(0.0, std::log(pairs.foretold[n] / below_ms));
    const double error = std::log(pairs.measured[n] / pairs.foretold[n]);
    z += short_by;
    r += error;
    zz += short_by * short_by;
    zr += short_by * error;
  }
  const double spread = zz - z * z / count;
  return spread > 0 ? std::clamp((zr - z * r / count) / spread, 0.0, kMostPower) : 0;
}

ShortNetworks fit(const Pairs& pairs) {
  ShortNetworks best;
  double least = error_of(best, pairs);
  const double shortest = *std::ranges::min_element(pairs.foretold);
  for (const double share : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}) {
    const double below = *core::quantile(pairs.foretold, share);
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

FittedShortNetworks fit_short_networks(const ForetoldNetworks& networks) {
  const std::size_t count = networks.fold.size();
  FittedShortNetworks none{.law = {}, .held_out_factor = std::vector<double>(count, 1.0)};
  if (count < kLeastNetworksForLaw) return none;
  FittedShortNetworks fitted = none;
  std::vector<double> gains;
  for (int fold = 0; fold < networks.folds; ++fold) {
    const auto law = fit(outside(networks, fold));
    for (std::size_t n = 0; n < count; ++n) {
      if (networks.fold[n] != fold) continue;
      fitted.held_out_factor[n] = law.factor(networks.foretold_ms[n]);
      gains.push_back(error_of({}, networks.foretold_ms[n], networks.measured_ms[n]) -
                      error_of(law, networks.foretold_ms[n], networks.measured_ms[n]));
    }
  }
  const double chance = *core::stddev(gains) / std::sqrt(static_cast<double>(gains.size()));
  if (!(*core::mean(gains) > kLawIsNoChance * chance)) return none;
  fitted.law = fit(outside(networks, -1));
  return fitted;
}

}  // namespace fleetfit::predict
