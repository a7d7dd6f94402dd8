#include "fleetfit/search/confirmation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fleetfit::search {
namespace {

// Deviations count as if that many predictions had been just as wrong as they said.
constexpr double kTrust = 4;
// A single surprise says that something is wrong, not how wrong all else is.
constexpr double kWorstSurprise = 4;

/// What a device without a design is worth: no more than any design.
double worth_of_nothing(std::span<const Prospect> prospects) {
  double worth = 0;
  for (const auto& prospect : prospects) worth = std::min(worth, prospect.accuracy);
  return worth;
}

}  // namespace

std::optional<std::size_t> next_to_confirm(std::span<const Prospect> prospects,
                                           const ConfirmOptions& options) {
  const double sure = options.sure ? *options.sure : worth_of_nothing(prospects);
  std::optional<std::size_t> best;
  double most = options.least_gain;
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    const double gain = prospects[i].within * (prospects[i].accuracy - sure);
    if (!(gain > most)) continue;
    most = gain;
    best = i;
  }
  return best;
}

double probability_within(const ExpectedCost& cost, double budget) {
  if (!(cost.deviation > 0)) return cost.value <= budget ? 1 : 0;
  return std::erfc((cost.value - budget) / cost.deviation / std::numbers::sqrt2) / 2;
}

void Doubt::see(const ExpectedCost& expected, double measured) {
  if (!(expected.deviation > 0)) return;
  const double surprise = std::abs(measured - expected.value) / expected.deviation;
  squares_ += std::pow(std::min(surprise, kWorstSurprise), 2);
  ++count_;
}

double Doubt::factor() const {
  return std::max(1.0, std::sqrt((kTrust + squares_) / (kTrust + count_)));
}

}  // namespace fleetfit::search
