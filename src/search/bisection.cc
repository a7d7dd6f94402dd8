#include "fleetfit/search/bisection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fleetfit/core/statistics.h"
#include "search/device_model.h"

namespace fleetfit::search {
namespace {

constexpr double kBisectionShare = 0.4;  // of the measurements; the others go to neighbours
constexpr int kMostHalvings = 40;
constexpr int kMostRepetitions = 8;  // halvings in a row that gave designs measured before
constexpr double kUnlikely = 0.25;

class Bisection {
 public:
  Bisection(ProxySolutions& proxy, std::span<const DeviceCost> device, const BisectOptions& options)
      : proxy_(proxy),
        device_(device),
        options_(options),
        models_(device.size(), DeviceModel(*proxy.proxy().space)) {}

  Result<Bisected> run() {
    FLEETFIT_TRY(halve_weights());
    FLEETFIT_TRY(try_neighbours());
    result_.measurements = result_.steps.size();
    return std::move(result_);
  }

 private:
  bool may_measure(std::size_t most) const {
    return result_.steps.size() < most && !options_.stop.stop_requested();
  }

  /// Measures a design that was not measured yet, and takes note of it, unless it was stopped.
  Status measure(std::size_t design, BisectPhase phase) {
    const auto row = proxy_.points()[design];
    Candidate measured = candidate_of(proxy_.designs()[design], row);
    for (std::size_t c = 0; c < device_.size(); ++c) {
      const auto one = proxy_.designs().part(design, 1);
      FLEETFIT_TRY(device_[c].source->evaluate(one, std::span(&measured.costs[c], 1)));
      if (!std::isfinite(measured.costs[c]) || measured.costs[c] <= 0) {
        measured.costs[c] = std::nan("");
      } else if (row[c] > 0) {
        models_[c].add(measured.design, row[c], measured.costs[c]);
      }
    }
    const bool failed = std::ranges::any_of(measured.costs, [](double c) { return std::isnan(c); });
    if (failed && options_.stop.stop_requested()) return {};
    measured_.emplace(design, result_.steps.size());
    keep_best(measured);
    result_.steps.push_back({phase, weights_, std::move(measured)});
    return {};
  }

  double excess(const Candidate& candidate) const {
    double sum = 0;
    for (std::size_t c = 0; c < device_.size(); ++c) {
      if (std::isnan(candidate.costs[c])) return std::numeric_limits<double>::infinity();
      sum += std::max(0.0, candidate.costs[c] / device_[c].limit - 1);
    }
    return sum;
  }

  void keep_best(const Candidate& candidate) {
    const double over = excess(candidate);
    if (over == 0) {
      result_.nearest.reset();
      auto& best = result_.best;
      const bool better = !best || candidate.accuracy > best->accuracy ||
                          (candidate.accuracy == best->accuracy && candidate.costs < best->costs);
      if (better) best = candidate;
    } else if (!result_.best && std::isfinite(over)) {
      if (!result_.nearest || over < excess(*result_.nearest)) result_.nearest = candidate;
    }
  }

  Status halve_weights() {
    const auto most = static_cast<std::size_t>(
        std::ceil(kBisectionShare * static_cast<double>(options_.max_measurements)));
    std::vector<double> low(device_.size(), 0);
    std::vector<double> high(device_.size(), 1);
    int repetitions = 0;
    for (int i = 0; i < kMostHalvings && may_measure(most); ++i) {
      weights_ = between(low, high);
      FLEETFIT_ASSIGN(const auto design, proxy_.solve(weights_));
      repetitions = measured_.contains(design) ? repetitions + 1 : 0;
      if (repetitions == 0) {
        FLEETFIT_TRY(measure(design, BisectPhase::bisection));
      }
      if (repetitions == kMostRepetitions || !measured_.contains(design)) break;
      const auto& costs = result_.steps[measured_.at(design)].measured.costs;
      for (std::size_t c = 0; c < device_.size(); ++c)
        (costs[c] <= device_[c].limit ? high : low)[c] = weights_[c];
      if (is_close_enough(costs)) break;
    }
    return {};
  }

  bool is_close_enough(const std::vector<double>& costs) const {
    for (std::size_t c = 0; c < device_.size(); ++c) {
      const double limit = device_[c].limit;
      if (!(costs[c] <= limit && costs[c] >= limit * (1 - options_.tolerance))) return false;
    }
    return true;
  }

  /// The middle of the box, drawn towards 0 as far as weights have to add up to at most 1.
  static std::vector<double> between(const std::vector<double>& low,
                                     const std::vector<double>& high) {
    std::vector<double> middle;
    for (std::size_t c = 0; c < low.size(); ++c) middle.push_back((low[c] + high[c]) / 2);
    const double sum = std::accumulate(middle.begin(), middle.end(), 0.0);
    if (sum > 1)
      for (double& weight : middle) weight /= sum;
    return middle;
  }

  bool can_predict() const {
    return std::ranges::all_of(models_, [](const DeviceModel& model) { return model.size() > 0; });
  }

  Status try_neighbours() {
    while (may_measure(options_.max_measurements) && can_predict()) {
      for (auto& model : models_) model.fit();
      const auto next = most_promising();
      if (!next) break;
      FLEETFIT_TRY(measure(*next, BisectPhase::neighbour));
    }
    return {};
  }

  /// What is expected of a design that was not measured.
  struct Prospect {
    double chance = 1;     // to keep all limits
    double overshoot = 0;  // by how much limits are exceeded, in logarithms; 0: probably not
  };

  std::optional<Prospect> prospect_of(std::size_t design) const {
    const auto row = proxy_.points()[design];
    Prospect prospect;
    for (std::size_t c = 0; c < device_.size(); ++c) {
      if (!(row[c] > 0)) return std::nullopt;
      const auto predicted = models_[c].predict(proxy_.designs()[design], row[c]);
      prospect.chance *= DeviceModel::chance_below(predicted, device_[c].limit);
      prospect.overshoot += std::max(0.0, predicted.mean - std::log(device_[c].limit));
    }
    return prospect;
  }

  /// What an accuracy has to exceed to be a gain: the best so far, or that of a poor design.
  double floor_of_gain() const {
    if (result_.best) return result_.best->accuracy;
    std::vector<double> accuracies;
    for (std::size_t i = 0; i < proxy_.points().size(); ++i)
      accuracies.push_back(-proxy_.points()[i].back());
    return core::quantile(accuracies, 0.1).value_or(0);
  }

  /// The design with the largest expected gain in accuracy. As long as nothing fits and nothing is
  /// likely to, the one that is nearest to it.
  std::optional<std::size_t> most_promising() const {
    const double floor = floor_of_gain();
    double most_gain = result_.best ? options_.least_gain * proxy_.scales().accuracy : 0;
    double most_chance = 0;
    double least_overshoot = std::numeric_limits<double>::infinity();
    std::optional<std::size_t> best;
    std::optional<std::size_t> nearest;
    for (std::size_t i = 0; i < proxy_.points().size(); ++i) {
      const double gain = -proxy_.points()[i].back() - floor;
      const bool cannot_gain = gain <= most_gain;  // were it sure to fit
      if ((cannot_gain && result_.best) || measured_.contains(i)) continue;
      const auto prospect = prospect_of(i);
      if (!prospect) continue;
      most_chance = std::max(most_chance, prospect->chance);
      if (prospect->chance * gain > most_gain) {
        most_gain = prospect->chance * gain;
        best = i;
      }
      if (prospect->overshoot < least_overshoot) {
        least_overshoot = prospect->overshoot;
        nearest = i;
      }
    }
    const bool is_lost = !result_.best && (most_chance < kUnlikely || !best);
    return is_lost ? nearest : best;
  }

  ProxySolutions& proxy_;
  std::span<const DeviceCost> device_;
  const BisectOptions& options_;
  std::vector<DeviceModel> models_;  // one for each cost
  std::vector<double> weights_;
  std::map<std::size_t, std::size_t> measured_;  // the step of each design that was measured
  Bisected result_;
};

}  // namespace

Result<Bisected> bisect(ProxySolutions& proxy, std::span<const DeviceCost> device,
                        const BisectOptions& options) {
  const auto& costs = proxy.proxy().costs;
  if (device.size() != costs.size()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("the device has {} costs, the proxy {}", device.size(), costs.size()));
  }
  for (std::size_t c = 0; c < device.size(); ++c) {
    if (!(device[c].limit > 0) || !std::isfinite(device[c].limit)) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: the limit {} is not positive", costs[c].name, device[c].limit));
    }
  }
  if (options.max_measurements == 0)
    return fail(ErrorCode::invalid_input, "bisection needs at least one measurement");
  return Bisection(proxy, device, options).run();
}

FleetCost fleet_cost(const FleetCostOptions& options) {
  const double each = options.seconds_per_measurement;
  const auto devices = static_cast<double>(options.devices);
  const double predictor_s = static_cast<double>(options.predictor_measurements) * each;
  FleetCost cost;
  cost.each_device_s = static_cast<double>(options.measurements) * each + options.search_s;
  cost.each_predictor_s = predictor_s + options.search_s;
  cost.proxy_s = predictor_s + devices * cost.each_device_s;
  cost.predictors_s = devices * cost.each_predictor_s;
  return cost;
}

}  // namespace fleetfit::search
