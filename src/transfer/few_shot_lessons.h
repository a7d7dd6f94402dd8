#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "fleetfit/transfer/few_shot.h"
#include "transfer/few_shot_process.h"
#include "transfer/few_shot_references.h"

namespace fleetfit::transfer {

/// All references as linear functions of a design's columns.
struct ReferenceFunctions {
  Eigen::MatrixXd weights;  ///< a column for each reference
  Eigen::RowVectorXd intercepts;

  Eigen::MatrixXd levels(const Eigen::MatrixXd& columns) const {
    return (columns * weights).rowwise() + intercepts;
  }
};

/// A reference that was left out, to see how far predictions of it are from its measurements.
struct Rehearsal {
  Points samples;
  Points tests;
  PartScales scales;
  Eigen::VectorXd sample_levels;  ///< in units of the usual deviation between designs
  Eigen::VectorXd test_levels;
};

/// All that is learned from the references.
struct FewShotLessons {
  FewShotOptions options;
  FewShotEncoder encoder;
  ReferenceFunctions functions;
  Standardizer reference_columns = {};
  Points typical = {};
  PartScales scales = {};
  double unit = 1;  // usual deviation between designs
  DevicePrior prior = {};
  std::vector<Rehearsal> rehearsals = {};

  /// Learns what is usual from the first `typical_count` designs; gives all of them as points.
  Points start(const EncodedDesigns& encoded, Eigen::Index typical_count);

  Points points(space::DesignBatch designs) const;

  /// By how much intervals have to be wider than the process says, to hold nine out of ten
  /// measurements of references that it has not seen, after `samples` samples.
  double widening(std::size_t samples) const;

  std::vector<std::size_t> choose(space::DesignBatch candidates, std::size_t count,
                                  const Points* measured, const Posterior* posterior) const;
};

}  // namespace fleetfit::transfer
