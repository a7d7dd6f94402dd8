#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "transfer/few_shot_references.h"

/// The Gaussian process of few-shot transfer: how alike designs are, what measurements say of the
/// others, and which ones to measure.
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

/// Designs that were measured on one device. Levels are counted from about their middle, in units
/// of the usual deviation between designs.
struct Observations {
  PartKernels kernels;  ///< of the designs among each other
  Eigen::VectorXd levels;
  Eigen::VectorXd rounding;  ///< variance that rounding adds to each
};

/// What is thought of a device before it is measured.
struct DevicePrior {
  LogWeights weights = {};
  double noise = 0;            ///< variance of measurements of one design
  double noise_deviation = 2;  ///< of its logarithm, between devices
};

/// A Gaussian process after the measurements: what is known about each design.
struct Posterior {
  LogWeights weights = {};
  double noise = 0;              ///< squared width of Student's t, whose variance is twice that
  Eigen::VectorXd sample_noise;  ///< large for outliers
  Eigen::LLT<Eigen::MatrixXd> factor;
  Eigen::VectorXd coefficients;

  /// `similarity` has a row for each design and a column for each sample.
  Eigen::VectorXd mean(const Eigen::MatrixXd& similarity) const {
    return similarity * coefficients;
  }
  /// Of the designs' true levels, without the noise of a measurement.
  Eigen::VectorXd variance(const Eigen::MatrixXd& similarity, const Eigen::VectorXd& self) const;
  /// Half an interval that holds nine of ten measurements of a design whose true level is known
  /// but for this variance.
  double reach(double variance) const;
};

/// The process for given weights and noise of each sample.
Posterior condition(const Observations& observations, const DevicePrior& prior,
                    Eigen::VectorXd sample_noise);

/// Weights and noise are moved from the prior as far as the measurements insist on it; noise has
/// heavy tails (Student's t with four degrees of freedom), so that single outliers count little.
Posterior fit_posterior(const Observations& observations, const DevicePrior& prior);

/// Negative logarithm of a normal density with mean 0, up to a constant. Infinite if the matrix is
/// no covariance.
double misfit(const Eigen::MatrixXd& covariance, const Eigen::VectorXd& values);

struct PatternSearchOptions {
  double step = 1;
  int sweeps = 4;  ///< over all coordinates; the step is halved after each
};

/// Moves one coordinate after the other downhill. Small problems without derivatives.
void pattern_search(const std::function<double(std::span<const double>)>& objective,
                    std::span<double> point, const PatternSearchOptions& options);

/// A device of the table, taken as if it were new: the others are its references.
struct ReferenceEvidence {
  Observations observations;
  double noise = 0;  ///< of its measurements
};

/// Weights under which each of the devices is likely, given the others.
LogWeights learn_weights(std::span<const ReferenceEvidence> devices);

/// What is known about designs before one of the candidates is measured.
struct ChoiceProblem {
  /// Covariance of designs that are to be predicted (rows) with candidates.
  Eigen::MatrixXd targets_by_candidates;
  Eigen::VectorXd candidate_variance;
  /// A candidate's covariance with all candidates.
  std::function<Eigen::VectorXd(Eigen::Index)> candidate_covariance;
  double noise = 0;  ///< variance of a measurement
};

/// Chooses at most `count` candidates, one after the other, each the one whose measurement lowers
/// the summed variance of all targets most; of equal ones the first.
std::vector<std::size_t> choose_greedily(ChoiceProblem problem, std::size_t count);

}  // namespace fleetfit::transfer
