#include "transfer/few_shot_references.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "fleetfit/core/statistics.h"

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kPenalties = 13;  // 1e-2, …, 1e4 in half powers of ten
constexpr double kNormalMad = 1.4826;
/// Residuals beyond so many deviations are outliers.
constexpr double kOutlier = 3;
/// A fraction of the typical latency below which predictions shrink instead of becoming negative.
constexpr double kLeastShare = 0.01;

/// Ridge regression on fixed rows, for many penalties and targets.
class RidgePath {
 public:
  explicit RidgePath(const MatrixXd& rows) : centre_(rows.colwise().mean()) {
    const MatrixXd centred = rows.rowwise() - centre_;
    const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(MatrixXd(centred.transpose() * centred));
    values_ = solver.eigenvalues().cwiseMax(0);
    vectors_ = solver.eigenvectors();
    rotated_ = centred * vectors_;
    const MatrixXd squares = rotated_.cwiseAbs2();
    for (int i = 0; i < kPenalties; ++i) {
      const VectorXd shrink = (values_.array() + penalty(i)).inverse();
      VectorXd leverage = squares * shrink;
      leverage.array() += 1 / static_cast<double>(rows.rows());
      leverages_.push_back(std::move(leverage));
    }
  }

  ReferenceModel fit(const VectorXd& target) const {
    ReferenceModel first = fit_once(target);
    const VectorXd fitted = rotated_ * (vectors_.transpose() * first.weights);
    const VectorXd residual = (target - fitted).array() - target.mean();
    const double limit = kOutlier * kNormalMad * core::median(absolute(residual)).value_or(0);
    ReferenceModel model = fit_once(target - residual + residual.cwiseMax(-limit).cwiseMin(limit));
    model.intercept -= centre_.dot(model.weights);
    return model;
  }

 private:
  static double penalty(int i) { return std::pow(10.0, -2 + 0.5 * i); }

  static std::vector<double> absolute(const VectorXd& values) {
    const VectorXd magnitudes = values.cwiseAbs();
    return {magnitudes.begin(), magnitudes.end()};
  }

  /// The intercept is that of centred rows.
  ReferenceModel fit_once(const VectorXd& target) const {
    const double mean = target.mean();
    const VectorXd centred = target.array() - mean;
    const VectorXd moments = rotated_.transpose() * centred;
    VectorXd best;
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kPenalties; ++i) {
      const VectorXd weights = moments.cwiseQuotient((values_.array() + penalty(i)).matrix());
      constexpr double kLeastFreedom = 1e-3;
      const VectorXd left_out =
          (centred - rotated_ * weights)
              .cwiseQuotient((1 - leverages_[static_cast<std::size_t>(i)].array())
                                 .max(kLeastFreedom)
                                 .matrix());
      const double error = left_out.squaredNorm() / static_cast<double>(target.size());
      if (error >= least) continue;
      least = error;
      best = weights;
    }
    return {.weights = vectors_ * best, .intercept = mean, .noise = least, .levels = target};
  }

  Eigen::RowVectorXd centre_;
  VectorXd values_;
  MatrixXd vectors_;
  MatrixXd rotated_;
  std::vector<VectorXd> leverages_;
};

}  // namespace

double LatencyScale::to_level(double ms) const { return std::log1p(ms / typical_ms); }

double LatencyScale::to_ms(double level) const {
  const double share = std::expm1(level);
  if (share >= kLeastShare) return typical_ms * share;
  return typical_ms * kLeastShare * std::exp(share / kLeastShare - 1);
}

std::vector<ReferenceModel> fit_references(const MatrixXd& columns,
                                           std::span<const ReferenceSamples> references) {
  std::vector<ReferenceModel> models;
  std::unique_ptr<const RidgePath> path;
  for (std::size_t i = 0; i < references.size(); ++i) {
    // Devices are mostly known on the same designs: what depends on those alone is worked out once.
    if (i == 0 || references[i].rows != references[i - 1].rows)
      path = std::make_unique<const RidgePath>(columns(references[i].rows, Eigen::all));
    models.push_back(path->fit(references[i].levels));
  }
  return models;
}

}  // namespace fleetfit::transfer
