#include "fleetfit/learned/lessons.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "fleetfit/core/counting.h"
#include "fleetfit/core/statistics.h"
#include "learned/device_ridge.h"

namespace fleetfit::learned {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kDefaultRidge = 0.3;

/// Joins the nearest groups as long as none becomes larger than `most`.
std::vector<std::size_t> group_alike(const MatrixXd& inputs, std::size_t most) {
  struct Pair {
    double distance;
    Index a;
    Index b;
  };
  std::vector<Pair> pairs;
  for (Index a = 0; a < inputs.rows(); ++a)
    for (Index b = a + 1; b < inputs.rows(); ++b)
      pairs.push_back({(inputs.row(a) - inputs.row(b)).norm(), a, b});
  std::ranges::stable_sort(pairs, {}, &Pair::distance);
  auto group = core::counting(static_cast<std::size_t>(inputs.rows()));
  for (const auto& pair : pairs) {
    const auto a = group[static_cast<std::size_t>(pair.a)];
    const auto b = group[static_cast<std::size_t>(pair.b)];
    const auto together = std::ranges::count(group, a) + std::ranges::count(group, b);
    if (a != b && together <= static_cast<std::ptrdiff_t>(most)) std::ranges::replace(group, b, a);
  }
  return group;
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

std::vector<std::size_t> whole_rows(const Samples& samples, std::size_t cost, std::size_t most) {
  std::vector<std::size_t> rows;
  const std::size_t step = std::max<std::size_t>(samples.designs.size() / most, 1);
  for (std::size_t row = 0; row < samples.designs.size(); row += step) {
    bool is_whole = true;
    for (std::size_t d = 0; d < samples.devices.size() && is_whole; ++d)
      is_whole = !std::isnan(samples.costs_on(cost, d)[row]);
    if (is_whole) rows.push_back(row);
  }
  return rows;
}

MatrixXd log_costs(const Samples& samples, std::size_t cost, std::span<const DeviceVector> devices,
                   std::span<const std::size_t> rows) {
  MatrixXd values(std::ssize(rows), std::ssize(devices));
  for (std::size_t d = 0; d < devices.size(); ++d)
    for (std::size_t i = 0; i < rows.size(); ++i)
      values(static_cast<Index>(i), static_cast<Index>(d)) =
          std::log(samples.costs_on(cost, d)[rows[i]]) - devices[d].level;
  return values;
}

std::vector<std::size_t> device_folds(const Samples& samples, std::size_t folds) {
  const std::size_t count = samples.devices.size();
  std::vector<std::size_t> fold(count);
  const auto inputs = fit_device_inputs(samples.features, kDefaultRidge);
  const auto devices = inputs ? read_devices(*inputs, samples)
                              : Result<std::vector<DeviceVector>>(tl::unexpected(inputs.error()));
  if (!devices) {
    for (std::size_t i = 0; i < count; ++i) fold[i] = i % folds;
    return fold;
  }
  auto group = group_alike(inputs_of(*devices), (count + folds - 1) / folds);
  // The largest group first, each into the fold that has the fewest devices.
  auto heads = core::counting(count);
  std::ranges::stable_sort(heads, std::ranges::greater{},
                           [&](std::size_t head) { return std::ranges::count(group, head); });
  std::vector<std::size_t> filled(folds);
  for (const auto head : heads) {
    const auto lowest = std::ranges::min_element(filled);
    for (std::size_t i = 0; i < count; ++i) {
      if (group[i] != head) continue;
      fold[i] = static_cast<std::size_t>(lowest - filled.begin());
      ++*lowest;
    }
  }
  return fold;
}

Result<std::vector<DeviceVector>> read_devices(const DeviceInputs& inputs, const Samples& samples) {
  std::vector<DeviceVector> devices;
  for (std::size_t i = 0; i < samples.devices.size(); ++i) {
    FLEETFIT_ASSIGN(auto device, core::within("device " + samples.devices[i],
                                              inputs.read(samples.features.row(i))));
    devices.push_back(std::move(device));
  }
  return devices;
}

namespace {

/// Squared errors of the devices of a fold by a ridge fit to the others.
double held_out_error(const MatrixXd& inputs, const MatrixXd& values,
                      std::span<const std::size_t> folds, std::size_t fold, double ridge) {
  std::vector<Index> known;
  std::vector<Index> held_out;
  for (std::size_t d = 0; d < folds.size(); ++d)
    (folds[d] == fold ? held_out : known).push_back(static_cast<Index>(d));
  if (known.size() < 2 || held_out.empty()) return 0;
  const DeviceRidge fitted(inputs, values, known, ridge);
  double squares = 0;
  for (const auto d : held_out)
    squares += (fitted.predict(inputs.row(d)) - values.col(d)).squaredNorm();
  return squares;
}

}  // namespace

Result<double> choose_ridge(const Samples& samples, std::span<const std::size_t> folds) {
  FLEETFIT_ASSIGN(const auto inputs, fit_device_inputs(samples.features, kDefaultRidge));
  FLEETFIT_ASSIGN(const auto devices, read_devices(inputs, samples));
  constexpr std::size_t kMost = 2000;
  const MatrixXd values = log_costs(samples, 0, devices, whole_rows(samples, 0, kMost));
  constexpr Index kFewest = 20;
  if (values.rows() < kFewest) return kDefaultRidge;
  const MatrixXd x = inputs_of(devices);
  const std::size_t count = std::ranges::max(folds) + 1;
  double best = kDefaultRidge;
  double least = INFINITY;
  for (const double ridge : {0.03, 0.06, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2}) {
    double error = 0;
    for (std::size_t fold = 0; fold < count; ++fold)
      error += held_out_error(x, values, folds, fold, ridge);
    if (!(error < least)) continue;
    least = error;
    best = ridge;
  }
  return best;
}

namespace {

/// Whether a design does anything at all: one whose input has no way to its output costs next to
/// nothing where dead paths are removed, which would spoil the fit to all others.
std::vector<bool> working_designs(const Samples& samples) {
  std::vector<bool> works;
  for (std::size_t i = 0; i < samples.designs.size(); ++i)
    works.push_back(samples.space->live_slots(samples.designs[i]).any());
  if (std::ranges::count(works, true) < 2) works.assign(works.size(), true);
  return works;
}

}  // namespace

CostTargets cost_targets(const Samples& samples, std::size_t cost,
                         std::span<const DeviceVector> devices) {
  CostTargets targets;
  std::vector<double> there;
  std::vector<double> logs;
  const auto works = working_designs(samples);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const auto values = samples.costs_on(cost, d);
    for (std::size_t i = 0; i < values.size(); ++i) {
      logs.push_back(works[i] ? std::log(values[i]) - devices[d].level : NAN);
      if (!std::isnan(logs.back())) there.push_back(logs.back());
    }
  }
  targets.offset = *core::mean(there);
  targets.scale = std::max(*core::stddev(there), 1e-6);
  for (const double value : logs)
    targets.numbers.push_back(static_cast<float>((value - targets.offset) / targets.scale));
  return targets;
}

AccuracyTargets accuracy_targets(const Samples& samples) {
  std::vector<double> there;
  for (const double value : samples.accuracy)
    if (!std::isnan(value)) there.push_back(value);
  const auto quantile = [&](double share) { return *core::quantile(there, share); };
  const auto [low, high] = std::ranges::minmax(there);
  const double least = 1e-3 * (high - low);
  AccuracyTargets targets{.centre = quantile(0.75),
                          .scale = std::max((quantile(0.9) - quantile(0.25)) / 2, least),
                          .spread90 = std::max(quantile(0.95) - quantile(0.05), least)};
  for (const double value : samples.accuracy)
    targets.numbers.push_back(
        static_cast<float>(std::asinh((value - targets.centre) / targets.scale)));
  return targets;
}

}  // namespace fleetfit::learned
