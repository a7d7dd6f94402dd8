#pragma once

#include <Eigen/Core>
#include <array>
#include <cstddef>

#include "transfer/few_shot_features.h"

namespace fleetfit::transfer {

/// Parts of the similarity of two designs.
enum class Part : std::size_t {
  common,       ///< the mean of what the references predict
  differences,  ///< where references differ from their mean
  smooth,       ///< near in the predictions of all references, not only along lines
  one_hot,
  live,
  counts,
};
inline constexpr std::size_t kParts = 6;

/// Natural logarithms of how much each part contributes.
using LogWeights = std::array<double, kParts>;

/// Designs as kernels see them.
struct Points {
  Eigen::MatrixXd references;  ///< a column for each reference: its latency, standardised
  EncodedDesigns encoded;

  Eigen::Index size() const { return references.rows(); }
};

/// Factors that give each part made of references a mean variance of 1 over typical designs.
struct PartScales {
  double common = 0;
  double differences = 0;
  double smooth = 0;
};
PartScales part_scales(const Eigen::MatrixXd& typical_references);

/// How alike the designs of `a` (rows) and `b` (columns) are in each part.
using PartKernels = std::array<Eigen::MatrixXd, kParts>;
PartKernels part_kernels(const Points& a, const Points& b, const PartScales& scales);

/// The sum of the parts, and of a constant: nothing is known about a device's speed as a whole.
Eigen::MatrixXd weighted_sum(const PartKernels& parts, const LogWeights& weights);

/// Each design's similarity with itself.
Eigen::VectorXd self_similarity(const Points& points, const PartScales& scales,
                                const LogWeights& weights);

}  // namespace fleetfit::transfer
