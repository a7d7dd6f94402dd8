#include "adapt/search/quality_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fleetfit/core/statistics.h"

namespace fleetfit::adapt {
namespace {

using elastic::BranchId;

// By how much branches differ from what their latency says, and how much scores scatter, both in
// units of the spread of all scores.
constexpr double kDifferences[] = {0.05, 0.2, 0.6};
constexpr double kNoises[] = {0.01, 0.1, 0.3, 0.6};
// How far from the budget, as its share, a subnet counts for half.
constexpr double kReach = 0.25;

}  // namespace

QualityModel::QualityModel(const SubnetProblem& problem, std::span<const Scored> scored)
    : problem_(problem), features_(2 * problem.models.size()) {
  for (const auto& model : problem.models) {
    auto& blocks = first_index_.emplace_back();
    for (const auto& block : model.blocks) {
      blocks.push_back(features_);
      features_ += block.branches.size();
    }
  }
  std::vector<FeatureRow> rows;
  std::vector<double> scores;
  std::vector<double> distrust;
  for (const auto& subnet : scored) {
    rows.push_back(row_of(subnet.path));
    scores.push_back(subnet.score);
    distrust.push_back(1 +
                       std::pow((subnet.ms - problem.budget_ms) / (kReach * problem.budget_ms), 2));
  }
  const double mean = core::mean(scores).value_or(0);
  const double spread = std::max(core::stddev(scores).value_or(0), 1e-6);
  double best = -std::numeric_limits<double>::infinity();
  for (const double difference : kDifferences) {
    for (const double noise : kNoises) {
      auto variances = distrust;
      for (double& variance : variances) variance *= std::pow(noise * spread, 2);
      LinearPosterior posterior(prior_of(mean, spread, difference), rows, scores, variances);
      if (!(posterior.log_evidence() > best)) continue;
      best = posterior.log_evidence();
      posterior_.emplace(std::move(posterior));
    }
  }
}

/// Features: what each model is worth, what its time is worth, and each branch but the originals.
LinearPrior QualityModel::prior_of(double mean, double spread, double difference) const {
  LinearPrior prior{.mean = std::vector<double>(features_),
                    .variance = std::vector<double>(features_)};
  const std::size_t models = problem_.models.size();
  for (std::size_t m = 0; m < models; ++m) {
    prior.mean[2 * m] = mean;
    prior.variance[2 * m] = std::pow(10 * spread, 2);
    prior.variance[2 * m + 1] = std::pow(10 * spread, 2);
    for (std::size_t b = 0; b < first_index_[m].size(); ++b)
      for (std::size_t i = 1; i < problem_.models[m].blocks[b].branches.size(); ++i)
        prior.variance[first_index_[m][b] + i] = std::pow(difference * spread, 2);
  }
  return prior;
}

double QualityModel::saved_share(const BranchId& id) const {
  const auto& ms = problem_.table.ms[id.model];
  double original = 0;
  double replaced = 0;
  const std::size_t end =
      id.block + problem_.models[id.model].blocks[id.block].branches[id.branch].span;
  for (std::size_t b = 0; b < ms.size(); ++b) {
    original += ms[b].front();
    if (b >= id.block && b < end) replaced += ms[b].front();
  }
  return original > 0 ? (replaced - ms[id.block][id.branch]) / original : 0;
}

FeatureRow QualityModel::row_of(const Path& path) const {
  const std::size_t model = path.front().model;
  FeatureRow row = {{.index = 2 * model}, {.index = 2 * model + 1, .value = 0}};
  for (const auto& id : path) {
    row[1].value += saved_share(id);
    if (id.branch > 0) row.push_back({.index = index_of(id)});
  }
  return row;
}

PathValues QualityModel::values() const {
  PathValues values{.branches = zeros(problem_.models)};
  const auto weights = posterior_->weights();
  for (std::size_t m = 0; m < problem_.models.size(); ++m) {
    values.offsets.push_back(weights[2 * m]);
    for (std::size_t b = 0; b < values.branches[m].size(); ++b)
      for (std::size_t i = 1; i < values.branches[m][b].size(); ++i) {
        const BranchId id{.model = m, .block = b, .branch = i};
        values.branches[m][b][i] = weights[index_of(id)] + weights[2 * m + 1] * saved_share(id);
      }
  }
  return values;
}

}  // namespace fleetfit::adapt
