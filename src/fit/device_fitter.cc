#include "fleetfit/fit/device_fitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "fleetfit/search/pareto.h"

namespace fleetfit::fit {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Of the normal distribution, nine tenths lie within so many standard deviations.
constexpr double kNineTenths = 1.6448536269514722;
constexpr std::size_t kBetterShown = 3;
constexpr std::size_t kEnoughAlike = 3;  // measured designs that tell that all cost the same
constexpr std::size_t kPoolShown = 24;

search::ExpectedCost cost_of(const ExpectedRange& range) {
  return {.value = range.value, .deviation = (range.high - range.low) / (2 * kNineTenths)};
}

space::Population one(space::Design design) {
  space::Population alone(design.size());
  alone.add(design);
  return alone;
}

/// Places of the designs that none beats in accuracy and in its first cost, the cheapest first.
std::vector<std::size_t> pareto_places(std::span<const double> accuracy,
                                       std::span<const double> cost) {
  std::vector<double> rows;
  for (std::size_t i = 0; i < accuracy.size(); ++i) {
    rows.push_back(std::isnan(accuracy[i]) ? kNan : cost[i]);
    rows.push_back(-accuracy[i]);
  }
  return search::pareto_set({rows, 2});
}

/// At most so many, evenly spread, both ends among them.
std::vector<std::size_t> thinned(std::vector<std::size_t> places, std::size_t most) {
  if (places.size() <= most) return places;
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < most; ++i)
    some.push_back(places[i * (places.size() - 1) / (most - 1)]);
  return some;
}

/// The same for the steps of a curve; one of them stays in any case.
std::vector<std::size_t> thinned_but(const std::vector<std::size_t>& places, std::size_t most,
                                     const std::function<bool(std::size_t)>& stays) {
  auto some = thinned(places, most);
  std::vector<std::size_t> all;
  for (const auto place : places)
    if (stays(place) || std::ranges::find(some, place) != some.end()) all.push_back(place);
  return all;
}

}  // namespace

DeviceFitter::DeviceFitter(FitterParts parts, FittedDevice device)
    : parts_(std::move(parts)),
      device_(std::move(device)),
      index_(parts_.space),
      doubts_(device_.budgets.size()) {}

void DeviceFitter::give_up(std::string reason) {
  is_open_ = false;
  device_.state = FitState::failed;
  device_.reason = std::move(reason);
}

Status DeviceFitter::measure_original(space::Design design, double accuracy) {
  if (auto ok = measure(one(design), std::span(&accuracy, 1), false); !ok || !is_open_) return ok;
  const auto& costs = seen_[*index_.find(design)].costs;
  if (costs.empty()) {
    give_up("its original cannot be measured: " + device_.reason);
    return {};
  }
  device_.original = device_.tried.back();
  for (std::size_t i = 0; i < device_.budgets.size(); ++i)
    if (const auto& share = device_.budgets[i].share) device_.budgets[i].limit = *share * costs[i];
  return {};
}

Status DeviceFitter::take(space::DesignBatch designs) {
  const std::vector<double> unknown(designs.size(), kNan);
  return measure(designs, unknown, false);
}

Status DeviceFitter::learn(space::DesignBatch candidates, std::size_t count) {
  if (!is_open_ || index_.size() >= count) return {};
  const auto chosen = parts_.known.front()->choose(candidates, count);
  space::Population designs(candidates.genes());
  for (const auto place : chosen)
    if (index_.size() + designs.size() < count && !index_.find(candidates[place]))
      designs.add(candidates[place]);
  return take(designs);
}

Status DeviceFitter::measure(space::DesignBatch designs, std::span<const double> accuracy,
                             bool confirms) {
  if (designs.empty()) return {};
  std::vector<ExpectedRange> expected;
  if (confirms) {
    FLEETFIT_ASSIGN(expected, expect(designs));
  }
  FLEETFIT_ASSIGN(auto probes, parts_.prober.measure(designs));
  const bool missing =
      std::ranges::any_of(probes, [](const Probe& probe) { return probe.costs.empty(); });
  if (missing && parts_.prober.waits_for_others()) {
    space::Population open(designs.genes());
    for (std::size_t i = 0; i < designs.size(); ++i)
      if (probes[i].costs.empty()) open.add(designs[i]);
    wait_for(open);
  }
  const std::size_t costs = device_.budgets.size();
  for (std::size_t i = 0; i < designs.size(); ++i) {
    FitPoint point{.confirms = confirms};
    if (confirms)
      point.expected.assign(expected.begin() + static_cast<std::ptrdiff_t>(i * costs),
                            expected.begin() + static_cast<std::ptrdiff_t>((i + 1) * costs));
    FLEETFIT_TRY(note(designs[i], accuracy[i], std::move(probes[i]), std::move(point)));
  }
  return {};
}

Status DeviceFitter::note(space::Design design, double accuracy, Probe probe, FitPoint point) {
  if (!index_.add(design)) return {};
  seen_.push_back({.costs = probe.costs, .accuracy = accuracy});
  if (probe.costs.empty()) {
    device_.reason = std::move(probe.problem);
    return {};
  }
  for (std::size_t i = 0; i < point.expected.size(); ++i)
    doubts_[i].see(cost_of(point.expected[i]), probe.costs[i]);
  point.design = parts_.space.format(design);
  point.accuracy = accuracy;
  point.measured = std::move(probe.costs);
  device_.tried.push_back(std::move(point));
  return {};
}

void DeviceFitter::wait_for(space::DesignBatch designs) {
  is_open_ = false;
  device_.state = FitState::waiting;
  for (std::size_t i = 0; i < designs.size(); ++i)
    device_.measure_next.push_back(parts_.space.format(designs[i]));
  device_.reason = fmt::format("{} design{} to be measured there", designs.size(),
                               designs.size() == 1 ? " has" : "s have");
}

Result<std::unique_ptr<const transfer::FewShotModel>> DeviceFitter::model(
    std::size_t budget) const {
  space::Population designs(index_.designs().genes());
  std::vector<double> costs;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].costs.empty()) continue;
    designs.add(index_.designs()[i]);
    costs.push_back(seen_[i].costs[budget]);
  }
  auto fitted = parts_.known[budget]->fit(designs, costs);
  if (!fitted)
    return fail(ErrorCode::device_failed,
                fmt::format("its measurements teach nothing: {}{}", fitted.error().message,
                            device_.reason.empty() ? "" : "; " + device_.reason));
  return fitted;
}

std::optional<double> DeviceFitter::same_cost(std::size_t budget) const {
  std::vector<double> costs;
  for (const auto& seen : seen_)
    if (!seen.costs.empty()) costs.push_back(seen.costs[budget]);
  if (costs.size() < kEnoughAlike || std::ranges::min(costs) < std::ranges::max(costs))
    return std::nullopt;
  return costs.front();
}

Result<std::vector<ExpectedRange>> DeviceFitter::expect(space::DesignBatch designs) const {
  const std::size_t costs = device_.budgets.size();
  std::vector<ExpectedRange> all(designs.size() * costs);
  std::vector<transfer::PredictedLatency> predicted(designs.size());
  for (std::size_t cost = 0; cost < costs; ++cost) {
    if (const auto same = same_cost(cost)) {
      for (std::size_t i = 0; i < designs.size(); ++i)
        all[i * costs + cost] = {*same, *same, *same};
      continue;
    }
    FLEETFIT_ASSIGN(const auto fitted, model(cost));
    fitted->predict(designs, predicted);
    const double doubt = doubts_[cost].factor();
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto& [ms, low, high] = predicted[i];
      all[i * costs + cost] = {ms, std::max(ms - doubt * (ms - low), 0.0),
                               ms + doubt * (high - ms)};
    }
  }
  return all;
}

double DeviceFitter::chance(std::span<const ExpectedRange> expected) const {
  double chance = 1;
  for (std::size_t i = 0; i < expected.size(); ++i)
    chance *= search::probability_within(cost_of(expected[i]), device_.budgets[i].limit);
  return chance;
}

bool DeviceFitter::keeps_budgets(std::span<const double> costs) const {
  for (std::size_t i = 0; i < costs.size(); ++i)
    if (!(costs[i] <= device_.budgets[i].limit)) return false;
  return !costs.empty();
}

Result<std::vector<double>> DeviceFitter::within(space::DesignBatch designs) const {
  FLEETFIT_ASSIGN(const auto expected, expect(designs));
  const std::size_t costs = device_.budgets.size();
  std::vector<double> chances;
  for (std::size_t i = 0; i < designs.size(); ++i) {
    const auto known = index_.find(designs[i]);
    chances.push_back(known ? (keeps_budgets(seen_[*known].costs) ? 1 : 0)
                            : chance(std::span(expected).subspan(i * costs, costs)));
  }
  return chances;
}

std::optional<double> DeviceFitter::sure() const {
  std::optional<double> best;
  for (const auto& seen : seen_)
    if (keeps_budgets(seen.costs) && !std::isnan(seen.accuracy))
      best = std::max(best.value_or(seen.accuracy), seen.accuracy);
  return best;
}

/// Accuracies of designs that were measured before anybody asked for them.
void DeviceFitter::fill_in(const Prospects& prospects) {
  for (std::size_t i = 0; i < prospects.designs.size(); ++i) {
    const auto number = index_.find(prospects.designs[i]);
    if (number && std::isnan(seen_[*number].accuracy))
      seen_[*number].accuracy = prospects.accuracy[i];
  }
  const auto fill = [&](FitPoint& point) {
    if (!std::isnan(point.accuracy)) return;
    const auto design = parts_.space.parse(point.design);
    if (design) point.accuracy = seen_[*index_.find(*design)].accuracy;
  };
  for (auto& point : device_.tried) fill(point);
  if (device_.original) fill(*device_.original);
}

Status DeviceFitter::confirm(const Prospects& prospects, const ConfirmPlan& plan) {
  fill_in(prospects);
  for (std::size_t step = 0; step < plan.most && is_open_; ++step) {
    FLEETFIT_ASSIGN(const auto chances, within(prospects.designs));
    std::vector<search::Prospect> open(prospects.designs.size());
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (std::isnan(prospects.accuracy[i]) || index_.find(prospects.designs[i])) continue;
      open[i] = {.accuracy = prospects.accuracy[i], .within = chances[i]};
    }
    auto next = search::next_to_confirm(open, {.sure = sure(), .least_gain = plan.least_gain});
    if (!next && !sure()) {
      FLEETFIT_ASSIGN(next, nearest_to_budgets(prospects));
    }
    if (!next) break;
    FLEETFIT_TRY(confirm_one(prospects.designs[*next], prospects.accuracy[*next]));
  }
  return {};
}

/// Of the designs that were not measured, the one that is expected to break budgets the least.
Result<std::optional<std::size_t>> DeviceFitter::nearest_to_budgets(
    const Prospects& prospects) const {
  FLEETFIT_ASSIGN(const auto expected, expect(prospects.designs));
  const std::size_t costs = device_.budgets.size();
  double least = std::numeric_limits<double>::infinity();
  std::optional<std::size_t> nearest;
  std::vector<double> values(costs);
  for (std::size_t i = 0; i < prospects.designs.size(); ++i) {
    if (std::isnan(prospects.accuracy[i]) || index_.find(prospects.designs[i])) continue;
    for (std::size_t c = 0; c < costs; ++c) values[c] = expected[i * costs + c].value;
    if (excess(values) >= least) continue;
    least = excess(values);
    nearest = i;
  }
  return nearest;
}

/// The largest share of a budget that is used.
double DeviceFitter::excess(std::span<const double> costs) const {
  double worst = 0;
  for (std::size_t i = 0; i < costs.size(); ++i)
    worst = std::max(worst, costs[i] / device_.budgets[i].limit);
  return worst;
}

Status DeviceFitter::confirm_one(space::Design design, double accuracy) {
  return measure(one(design), std::span(&accuracy, 1), true);
}

FitPoint DeviceFitter::point_of(space::Design design, double accuracy,
                                std::span<const ExpectedRange> expected) const {
  FitPoint point{.design = parts_.space.format(design),
                 .accuracy = accuracy,
                 .expected = {expected.begin(), expected.end()}};
  if (const auto number = index_.find(design)) point.measured = seen_[*number].costs;
  return point;
}

Status DeviceFitter::conclude(const Prospects& prospects) {
  fill_in(prospects);
  if (!is_open_) return {};
  const std::size_t costs = device_.budgets.size();
  const FitPoint* best = nullptr;
  const FitPoint* nearest = nullptr;
  for (const auto& point : device_.tried) {
    if (std::isnan(point.accuracy)) continue;
    if (nearest == nullptr || excess(point.measured) < excess(nearest->measured)) nearest = &point;
    const bool holds = keeps_budgets(point.measured);
    if (holds && (best == nullptr || point.accuracy > best->accuracy)) best = &point;
  }
  device_.state = best != nullptr ? FitState::fitted : FitState::unreachable;
  device_.reason.clear();  // of single measurements that failed
  if (best != nullptr) device_.best = *best;
  if (best == nullptr && nearest != nullptr) device_.nearest = *nearest;

  FLEETFIT_ASSIGN(auto expected, expect(prospects.designs));
  std::vector<double> first(prospects.designs.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto number = index_.find(prospects.designs[i]);
    const bool known = number && !seen_[*number].costs.empty();
    first[i] = known ? seen_[*number].costs[0] : expected[i * costs].value;
  }
  const auto places = pareto_places(prospects.accuracy, first);
  const auto point_at = [&](std::size_t i) {
    return point_of(prospects.designs[i], prospects.accuracy[i],
                    std::span(expected).subspan(i * costs, costs));
  };
  const auto is_best = [&](std::size_t i) {
    return best != nullptr && parts_.space.format(prospects.designs[i]) == best->design;
  };
  for (const auto i : thinned_but(places, kPoolShown, is_best)) device_.pool.push_back(point_at(i));
  std::vector<std::size_t> beyond;
  std::ranges::copy_if(places, std::back_inserter(beyond), [&](std::size_t i) {
    return first[i] > device_.budgets[0].limit && best != nullptr &&
           prospects.accuracy[i] > best->accuracy;
  });
  for (const auto i : thinned(beyond, kBetterShown)) device_.better.push_back(point_at(i));
  return {};
}

}  // namespace fleetfit::fit
