#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "adapt/branch_paths.h"
#include "adapt/search/linear_posterior.h"
#include "fleetfit/adapt/guided.h"

namespace fleetfit::adapt {

/// A subnet with its score.
struct Scored {
  Path path = {};
  double ms = 0;
  double score = 0;
};

/// What branches lose against the original, learned from whole subnets: the score of a subnet is
/// that of its model, less something for the time that it saves, and less what each branch loses
/// more or less than that. Subnets far from the budget count for less, as losses add up only among
/// subnets that are alike.
class QualityModel {
 public:
  /// `scored` is not empty. How strongly branches differ and how much scores scatter is chosen by
  /// how likely it makes the scores.
  QualityModel(const SubnetProblem& problem, std::span<const Scored> scored);

  /// For `frontier`.
  PathValues values() const;

  LinearPrediction predict(const Path& path) const { return posterior_->predict(row_of(path)); }

 private:
  FeatureRow row_of(const Path& path) const;
  double saved_share(const elastic::BranchId& id) const;
  std::size_t index_of(const elastic::BranchId& id) const {
    return first_index_[id.model][id.block] + id.branch;
  }
  LinearPrior prior_of(double mean, double spread, double difference) const;

  const SubnetProblem& problem_;
  std::vector<std::vector<std::size_t>> first_index_;  // of each block's features
  std::size_t features_ = 0;
  std::optional<LinearPosterior> posterior_;
};

}  // namespace fleetfit::adapt
