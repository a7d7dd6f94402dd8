#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "fleetfit/core/statistics.h"
#include "fleetfit/learned/lessons.h"
#include "fleetfit/search/pareto.h"
#include "learned/device_ridge.h"

namespace fleetfit::learned {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Outputs of a network for all designs, row by row.
std::vector<float> outputs_of(const DesignNetwork& network, const DesignColumns& columns,
                              space::DesignBatch designs, core::ThreadPool& pool) {
  constexpr std::size_t kChunk = 512;
  const std::size_t width = network.outputs();
  std::vector<float> outputs(designs.size() * width);
  pool.parallel_chunks(designs.size(), kChunk, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint32_t> room(columns.most_taken());
    std::vector<float> scratch;
    for (std::size_t i = begin; i < end; ++i) {
      const auto taken = std::span(room).first(columns.taken(designs[i], room));
      network.apply(taken, std::span(outputs).subspan(i * width, width), scratch);
    }
  });
  return outputs;
}

std::vector<double> mean_accuracy(const Model::Parts& parts, const DesignColumns& columns,
                                  space::DesignBatch designs, core::ThreadPool& pool) {
  std::vector<double> sums(designs.size());
  for (const auto& member : parts.accuracy.members) {
    const auto outputs = outputs_of(member, columns, designs, pool);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += parts.accuracy.of(outputs[i]);
  }
  for (double& sum : sums) sum /= static_cast<double>(parts.accuracy.members.size());
  return sums;
}

/// What one member says of all designs on a device, in ln.
std::vector<double> logs_on(const CostModel& cost, std::span<const float> outputs,
                            const DeviceVector& device) {
  const std::size_t width = device.inputs.size() + 1;
  std::vector<double> logs(outputs.size() / width);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    double number = outputs[i * width];
    for (std::size_t k = 0; k + 1 < width; ++k)
      number += outputs[i * width + k + 1] * device.inputs[k];
    logs[i] = device.level + cost.offset + cost.scale * number;
  }
  return logs;
}

double rank_correlation(std::span<const double> truth, std::span<const double> predicted) {
  std::vector<double> a;
  std::vector<double> b;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (std::isnan(truth[i])) continue;
    a.push_back(truth[i]);
    b.push_back(predicted[i]);
  }
  return core::spearman(a, b).value_or(0);
}

constexpr double kKept = 0.92;  // share of the choices that keep their limit with the margin
constexpr int kLimits = 16;     // of each device

/// Designs that all devices have: ln of the cost without the level, design x device.
struct Whole {
  MatrixXd values;
  std::vector<double> accuracy;
};

Whole whole_of(const Samples& samples, std::size_t cost, std::span<const DeviceVector> devices,
               std::span<const double> accuracy) {
  constexpr std::size_t kMost = 4000;
  auto rows = whole_rows(samples, cost, kMost);
  std::erase_if(rows, [&](std::size_t row) {
    return !samples.space->live_slots(samples.designs[row]).any();
  });
  Whole whole{.values = log_costs(samples, cost, devices, rows), .accuracy = {}};
  for (const auto row : rows) whole.accuracy.push_back(accuracy[row]);
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

/// How far an ensemble can be trusted on devices that none of its members has seen.
struct Trust {
  double margin = 3;  ///< times the spread
  Risk risk = {};
  double usual_spread = 0.02;  ///< the median
};

struct RehearsalOptions {
  double ridge = 0.3;
  double noise = 0.015;
  std::span<const double> accuracy = {};  ///< by which designs would be chosen
};

/// Takes each fold of devices in turn as if it were new. An ensemble of linear fits stands for the
/// networks, which would take too long: each is fitted without that fold and without one other. At
/// budgets spread over a device's range it finds which designs would be chosen, and by how many
/// times the ensemble's spread their true costs exceed the predicted ones. The price of risk is the
/// least at which designs chosen with it keep their budgets often enough. Defaults if there are
/// fewer than three folds or too few designs that all devices have.
Trust rehearse(const Samples& samples, std::size_t cost, std::span<const DeviceVector> devices,
               std::span<const std::size_t> folds, const RehearsalOptions& options) {
  constexpr Index kFewest = 50;
  constexpr std::size_t kFewestFolds = 3;
  const std::size_t count = std::ranges::max(folds) + 1;
  const auto whole = whole_of(samples, cost, devices, options.accuracy);
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

}  // namespace

void calibrate(Model::Parts& parts, const Samples& samples, std::span<const std::size_t> folds,
               double ridge, core::ThreadPool& pool) {
  const DesignColumns columns(*parts.space);
  const auto accuracy = mean_accuracy(parts, columns, samples.designs, pool);
  const auto devices = read_devices(parts.device, samples);
  if (!devices) return;
  for (std::size_t cost = 0; cost < parts.costs.size(); ++cost) {
    auto& model = parts.costs[cost];
    std::vector<double> correlations(devices->size());
    std::vector<std::vector<float>> outputs;
    for (const auto& member : model.members)
      outputs.push_back(outputs_of(member.network, columns, samples.designs, pool));
    pool.parallel_for(devices->size(), [&](std::size_t d) {
      const auto& unseen = outputs[std::min(folds[d], outputs.size() - 1)];
      correlations[d] =
          rank_correlation(samples.costs_on(cost, d), logs_on(model, unseen, (*devices)[d]));
    });
    model.rank_correlation = core::mean(correlations).value_or(0);
    auto trust = rehearse(samples, cost, *devices, folds,
                          {.ridge = ridge, .noise = model.noise, .accuracy = accuracy});
    model.margin = trust.margin;
    model.risk = std::move(trust.risk);
    model.usual_spread = trust.usual_spread;
  }
}

void fill_in_typical(Model::Parts& parts, std::uint64_t seed) {
  constexpr std::size_t kDesigns = 500;
  const DesignColumns columns(*parts.space);
  core::Random random = core::Random(seed).split("typical");
  space::Population designs(parts.space->genes().size(), kDesigns);
  for (std::size_t i = 0; i < kDesigns; ++i) parts.space->sample(random, designs[i]);
  core::ThreadPool alone(1);
  for (auto& cost : parts.costs) {
    for (auto& member : cost.members) {
      const auto outputs = outputs_of(member.network, columns, designs, alone);
      const std::size_t width = member.network.outputs();
      std::vector<double> sums(width);
      for (std::size_t i = 0; i < outputs.size(); ++i) sums[i % width] += outputs[i];
      member.typical.clear();
      for (const double sum : sums)
        member.typical.push_back(static_cast<float>(sum / static_cast<double>(kDesigns)));
    }
  }
}

}  // namespace fleetfit::learned
