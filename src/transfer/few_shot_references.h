#pragma once

#include <Eigen/Core>
#include <span>
#include <vector>

namespace fleetfit::transfer {

/// log(1 + latency / typical latency): like the latency itself where it is small, so that designs
/// of nearly no latency do not rule, and like its logarithm where it is large, as noise there grows
/// with the latency.
struct LatencyScale {
  double typical_ms = 1;

  double to_level(double ms) const;
  double to_ms(double level) const;  ///< always positive and growing with the level
};

/// A device whose latency is known for some designs, which are rows of a matrix.
struct ReferenceSamples {
  std::vector<Eigen::Index> rows = {};
  Eigen::VectorXd levels = {};  ///< by `LatencyScale`, of each of the rows
};

/// A device's latency as a linear function of a design's columns.
struct ReferenceModel {
  Eigen::VectorXd weights;
  double intercept = 0;
  double noise = 0;        ///< mean square error for designs that were not seen
  Eigen::VectorXd levels;  ///< the samples, outliers drawn near
};

/// Fits each reference by ridge regression with the penalty that predicts left-out samples best.
/// `columns` has a row for each design.
std::vector<ReferenceModel> fit_references(const Eigen::MatrixXd& columns,
                                           std::span<const ReferenceSamples> references);

}  // namespace fleetfit::transfer
