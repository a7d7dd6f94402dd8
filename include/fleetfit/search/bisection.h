#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/search/problem.h"
#include "fleetfit/search/strategy.h"
#include "fleetfit/space/design_index.h"

/// The best design for a device that can be measured but has no predictor, by way of a proxy whose
/// costs are known and rise and fall much like the device's.
namespace fleetfit::search {

struct ProxyOptions {
  std::uint64_t most_listed = 200'000;  ///< spaces up to this size are evaluated whole
  EvolutionOptions evolution = {};      ///< for larger ones
  std::uint64_t seed = 1;
};

/// The designs that are best on the proxy, for each weight t: what does not depend on the device.
/// Solved weights are kept, so that one object serves a whole fleet. Belongs to one thread.
class ProxySolutions {
 public:
  /// `proxy` has the proxy's costs; its limits and weights are not looked at. `listed`, if there
  /// are any, are the only designs to be considered. Fails as the sources do, and with `not_found`
  /// if they know none of the designs. The sources and the pool must outlive the object.
  static Result<ProxySolutions> prepare(const Problem& proxy, core::ThreadPool& pool,
                                        const ProxyOptions& options = {},
                                        space::DesignBatch listed = {});

  /// The number of the design that minimizes -(1 - sum of t) accuracy + sum of t * cost, in units
  /// of the scales; one weight for each cost.
  Result<std::size_t> solve(const std::vector<double>& weights);

  /// Weights that were solved so far.
  std::size_t solved() const { return solutions_.size(); }

  /// All designs that were met, with the proxy's costs and minus the accuracy in each row.
  space::DesignBatch designs() const { return index_.designs(); }
  PointsView points() const { return {rows_, proxy_.objectives()}; }
  const Problem& proxy() const { return proxy_; }
  const Scales& scales() const { return scales_; }
  std::uint64_t evaluations() const { return evaluations_; }

 private:
  ProxySolutions(const Problem& proxy, core::ThreadPool& pool, const ProxyOptions& options);

  Status evaluate_listed(space::DesignBatch designs);
  Status look_around();
  Status run(Strategy& strategy, const Problem& problem);
  std::vector<std::size_t> best_of(const Problem& problem, std::size_t count) const;
  bool is_complete() const { return is_complete_; }

  Problem proxy_;
  core::ThreadPool* pool_;
  ProxyOptions options_;
  space::DesignIndex index_;
  std::vector<double> rows_;
  Scales scales_;
  std::map<std::vector<double>, std::size_t> solutions_;
  std::uint64_t evaluations_ = 0;
  bool is_complete_ = false;  // all designs that there are were evaluated
};

/// A cost on the device, in the order of the proxy's. Measuring it is what the search saves.
struct DeviceCost {
  const space::Source* source = nullptr;
  double limit = 0;  ///< positive and finite
};

struct BisectOptions {
  std::size_t max_measurements = 10;  ///< of different designs
  /// A design within this share below the limit ends the bisection.
  double tolerance = 0;
  /// Improvements of the accuracy that are expected to be smaller, as a share of its scale, are not
  /// worth a measurement.
  double least_gain = 1e-4;
  std::stop_token stop = {};
};

enum class BisectPhase : std::uint8_t {
  bisection,  ///< the best design of a weight
  neighbour,  ///< the one from which the most is expected, after all that was measured
};

struct BisectStep {
  BisectPhase phase = BisectPhase::bisection;
  std::vector<double> weights = {};  ///< t of each cost; of a neighbour, where the bisection ended
  Candidate measured = {};           ///< NaN if it could not be measured
};

struct Bisected {
  std::optional<Candidate> best = {};     ///< the most accurate that keeps all limits
  std::optional<Candidate> nearest = {};  ///< exceeds limits the least; if none keeps them
  std::vector<BisectStep> steps = {};     ///< in order, one for each measurement
  std::size_t measurements = 0;
};

/// Bisects the weights (algorithm 1 of "Scaling Up Deep Neural Network Optimization for Edge
/// Inference"): a larger t makes a design cheaper on the proxy and so, if costs are monotone, on
/// the device. With several costs, the weight of each is bisected at once. Weighted sums find only
/// the convex part of what is possible, and costs are not quite monotone. So the second half of the
/// measurements goes to the designs that promise the most, by a model of how the device differs
/// from the proxy. The best design that was measured is given, wherever the last step ended.
///
/// Fails with `invalid_input` if `device` has not a cost for each of the proxy's, or a limit is not
/// positive; and as the device's sources do.
Result<Bisected> bisect(ProxySolutions& proxy, std::span<const DeviceCost> device,
                        const BisectOptions& options = {});

/// What the devices of a fleet take until each has its network.
struct FleetCostOptions {
  std::size_t devices = 1;
  std::size_t measurements = 10;        ///< on each device, by way of a proxy
  double seconds_per_measurement = 20;  ///< with all runs, warm-up and preparation
  double search_s = 0;                  ///< on a computer, for each device
  /// Designs measured to build a latency predictor: once, for the proxy, or for each device.
  std::size_t predictor_measurements = 5000;
};

/// In seconds of machine time, as if all were done one after the other: neither number becomes
/// smaller by doing it side by side.
struct FleetCost {
  double proxy_s = 0;           ///< one predictor, and a few measurements on each device
  double predictors_s = 0;      ///< a predictor for each device
  double each_device_s = 0;     ///< what one more device takes by way of the proxy
  double each_predictor_s = 0;  ///< what one more device takes with a predictor of its own

  /// How many times as much the predictors take.
  double ratio() const { return proxy_s > 0 ? predictors_s / proxy_s : 0; }
};

/// One Proxy's table 1 for one's own fleet.
FleetCost fleet_cost(const FleetCostOptions& options);

}  // namespace fleetfit::search
