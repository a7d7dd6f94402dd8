#include "learned/rehearsal.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "fleetfit/core/statistics.h"
#include "fleetfit/search/pareto.h"

namespace fleetfit::learned {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kKept = 0.92;  // share of the choices that keep their limit with the margin
constexpr int kLimits = 16;     // of each device

/// Designs that all devices have: ln of the cost without the level, design x device.
struct Whole {
  MatrixXd values;
  std::vector<double> accuracy;
};

Whole whole_rows(const Samples& samples, std::size_t cost, std::span<const DeviceVector> devices,
                 std::span<const double> accuracy) {
  constexpr std::size_t kMost = 4000;
  std::vector<std::size_t> rows;
  const std::size_t step = std::max<std::size_t>(samples.designs.size() / kMost, 1);
  for (std::size_t row = 0; row < samples.designs.size(); row += step) {
    bool is_whole = samples.space->live_slots(samples.designs[row]).any();
    for (std::size_t d = 0; d < devices.size() && is_whole; ++d)
      is_whole = !std::isnan(samples.costs_on(cost, d)[row]);
    if (is_whole) rows.push_back(row);
  }
  Whole whole{.values = MatrixXd(std::ssize(rows), std::ssize(devices)), .accuracy = {}};
  for (const auto row : rows) whole.accuracy.push_back(accuracy[row]);
  for (std::size_t d = 0; d < devices.size(); ++d)
    for (std::size_t i = 0; i < rows.size(); ++i)
      whole.values(static_cast<Index>(i), static_cast<Index>(d)) =
          std::log(samples.costs_on(cost, d)[rows[i]]) - devices[d].level;
  return whole;
}

/// What an ensemble says of all designs on one device.
struct Ensemble {
  VectorXd mean;
  VectorXd spread;
};

Ensemble ensemble_of(const Whole& whole, const MatrixXd& inputs, std::span<const std::size_t> folds,
                     std::size_t count, Index device, double ridge) {
  const std::size_t own = folds[static_cast<std::size_t>(device)];
  std::vector<VectorXd> members;
  for (std::size_t fold = 0; fold < count; ++fold) {
    if (fold == own) continue;
    std::vector<Index> known;
    for (std::size_t d = 0; d < folds.size(); ++d)
      if (folds[d] != own && folds[d] != fold) known.push_back(static_cast<Index>(d));
    if (known.size() < 2) continue;
    const DeviceRidge fitted(inputs, whole.values, known, ridge);
    members.push_back(fitted.predict(inputs.row(device)));
  }
  Ensemble ensemble{.mean = VectorXd::Zero(whole.values.rows()),
                    .spread = VectorXd::Zero(whole.values.rows())};
  if (members.size() < 2) return ensemble;
  for (const auto& member : members) ensemble.mean += member;
  ensemble.mean /= static_cast<double>(members.size());
  for (const auto& member : members) ensemble.spread += (member - ensemble.mean).cwiseAbs2();
  ensemble.spread = (ensemble.spread / static_cast<double>(members.size() - 1)).cwiseSqrt();
  return ensemble;
}

/// A device that is taken as new.
struct Novice {
  VectorXd truth;
  VectorXd predicted;
  VectorXd spread;  // with the noise
  std::vector<double> limits;
};

Novice novice_of(const Whole& whole, const Ensemble& ensemble, Index device, double noise) {
  Novice novice{.truth = whole.values.col(device),
                .predicted = ensemble.mean,
                .spread = (ensemble.spread.array().square() + noise * noise).sqrt(),
                .limits = {}};
  const std::span all(novice.truth.data(), static_cast<std::size_t>(novice.truth.size()));
  for (int step = 0; step < kLimits; ++step)
    novice.limits.push_back(*core::quantile(all, (step + 0.5) / kLimits));
  return novice;
}

/// By how many times the spread the true costs of chosen designs exceed the predicted ones.
void add_excesses(const Whole& whole, const Novice& novice, std::vector<double>& excesses) {
  for (const double limit : novice.limits) {
    Index best = -1;
    for (Index i = 0; i < novice.truth.size(); ++i) {
      if (novice.predicted[i] > limit) continue;
      const auto accuracy = [&](Index row) {
        return whole.accuracy[static_cast<std::size_t>(row)];
      };
      if (best < 0 || accuracy(i) > accuracy(best)) best = i;
    }
    if (best < 0) continue;
    excesses.push_back((novice.truth[best] - novice.predicted[best]) / novice.spread[best]);
  }
}

/// A design that might be chosen within some limit.
struct Candidate {
  double chance = 0;  // that it breaks the limit
  double accuracy = 0;
  bool keeps = false;
};

/// The designs of which no other is both safer and more accurate; whatever risk costs, the best is
/// one of them. The safest alone if all are too risky.
std::vector<Candidate> candidates_for(const Whole& whole, const Novice& novice, double limit,
                                      const Risk& risk) {
  std::vector<double> rows;
  for (Index i = 0; i < novice.truth.size(); ++i) {
    rows.push_back(risk.chance((limit - novice.predicted[i]) / novice.spread[i]));
    rows.push_back(-whole.accuracy[static_cast<std::size_t>(i)]);
  }
  const search::PointsView points{rows, 2};
  std::vector<Candidate> front;
  for (const std::size_t i : search::pareto_set(points)) {
    const double chance = points[i][0];
    if (!front.empty() && chance > Goal{}.most_risk) break;
    front.push_back({.chance = chance,
                     .accuracy = whole.accuracy[i],
                     .keeps = novice.truth[static_cast<Index>(i)] <= limit});
  }
  return front;
}

/// The share of limits that are kept if risk has that price.
double kept_at(double price, std::span<const std::vector<Candidate>> cases) {
  std::size_t kept = 0;
  for (const auto& candidates : cases) {
    const auto best = std::ranges::max_element(
        candidates, {}, [&](const Candidate& one) { return one.accuracy - price * one.chance; });
    kept += best->keeps ? 1 : 0;
  }
  return static_cast<double>(kept) / static_cast<double>(cases.size());
}

/// The least price at which enough limits are kept, to some percent.
double price_of_risk(std::span<const std::vector<Candidate>> cases, double spread_of_accuracy) {
  constexpr double kEnough = 0.92;
  constexpr int kSteps = 16;
  double low = std::log(1e-3 * spread_of_accuracy);
  double high = std::log(1e2 * spread_of_accuracy);
  for (int step = 0; step < kSteps; ++step) {
    const double middle = (low + high) / 2;
    (kept_at(std::exp(middle), cases) < kEnough ? low : high) = middle;
  }
  return std::exp(high);
}

Risk learn_risk(const Whole& whole, std::span<const Novice> novices,
                std::span<const double> excesses) {
  constexpr int kSteps = 64;
  const double spread =
      *core::quantile(whole.accuracy, 0.95) - *core::quantile(whole.accuracy, 0.05);
  if (excesses.size() < kSteps || !(spread > 0)) return {};
  Risk risk;
  for (int step = 0; step <= kSteps; ++step)
    risk.excess.push_back(*core::quantile(excesses, step / static_cast<double>(kSteps)));
  std::vector<std::vector<Candidate>> cases;
  for (const auto& novice : novices)
    for (const double limit : novice.limits)
      cases.push_back(candidates_for(whole, novice, limit, risk));
  risk.price = price_of_risk(cases, spread);
  return risk;
}

}  // namespace

// In the form whose equations are as many as devices: there are fewer of them than of inputs.
DeviceRidge::DeviceRidge(const MatrixXd& inputs, const MatrixXd& values,
                         const std::vector<Index>& known, double ridge) {
  const MatrixXd x = inputs(known, Eigen::all);
  const MatrixXd y = values(Eigen::all, known);
  centre_ = x.colwise().mean();
  apart_ = x.rowwise() - centre_;
  mean_ = y.rowwise().mean();
  deviations_ = y.colwise() - mean_;
  MatrixXd likeness = apart_ * apart_.transpose();
  likeness.diagonal().array() +=
      ridge * likeness.trace() / static_cast<double>(known.size()) + 1e-9;
  solver_.compute(likeness);
}

VectorXd DeviceRidge::predict(const Eigen::RowVectorXd& inputs) const {
  const VectorXd weights = solver_.solve(apart_ * (inputs - centre_).transpose());
  return mean_ + deviations_ * weights;
}

MatrixXd inputs_of(std::span<const DeviceVector> devices) {
  MatrixXd inputs(std::ssize(devices), std::ssize(devices[0].inputs));
  for (Index d = 0; d < inputs.rows(); ++d)
    for (Index i = 0; i < inputs.cols(); ++i)
      inputs(d, i) = devices[static_cast<std::size_t>(d)].inputs[static_cast<std::size_t>(i)];
  return inputs;
}

Trust rehearse(const Samples& samples, std::size_t cost, std::span<const DeviceVector> devices,
               std::span<const std::size_t> folds, const RehearsalOptions& options) {
  constexpr Index kFewest = 50;
  constexpr std::size_t kFewestFolds = 3;
  const std::size_t count = std::ranges::max(folds) + 1;
  const auto whole = whole_rows(samples, cost, devices, options.accuracy);
  if (count < kFewestFolds || whole.values.rows() < kFewest) return {};
  const MatrixXd inputs = inputs_of(devices);
  std::vector<double> excesses;
  std::vector<double> spreads;
  std::vector<Novice> novices;
  for (Index device = 0; device < inputs.rows(); ++device) {
    const auto ensemble = ensemble_of(whole, inputs, folds, count, device, options.ridge);
    novices.push_back(novice_of(whole, ensemble, device, options.noise));
    add_excesses(whole, novices.back(), excesses);
    for (Index i = 0; i < ensemble.spread.size(); i += 10) spreads.push_back(ensemble.spread[i]);
  }
  constexpr double kLeastSpread = 1e-4;
  return {.margin = std::max(core::quantile(excesses, kKept).value_or(3), 0.0),
          .risk = learn_risk(whole, novices, excesses),
          .usual_spread = std::max(core::median(spreads).value_or(0), kLeastSpread)};
}

}  // namespace fleetfit::learned
