#include "transfer/few_shot_kernel.h"

#include <cmath>

namespace fleetfit::transfer {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Variance of a device's speed as a whole, in units of the variance between designs.
constexpr double kLevelVariance = 30;

double inverse(double value) { return value > 1e-12 ? 1 / value : 0; }

double weight(const LogWeights& weights, Part part) {
  return std::exp(weights[static_cast<std::size_t>(part)]);
}

}  // namespace

PartScales part_scales(const MatrixXd& typical_references) {
  const VectorXd mean = typical_references.rowwise().mean();
  return {
      .common = inverse(mean.squaredNorm() / static_cast<double>(mean.size())),
      .differences = inverse((typical_references.colwise() - mean).rowwise().squaredNorm().mean()),
      .smooth = inverse(typical_references.rowwise().squaredNorm().mean())};
}

PartKernels part_kernels(const Points& a, const Points& b, const PartScales& scales) {
  const auto count = static_cast<double>(a.references.cols());
  const MatrixXd dots = a.references * b.references.transpose();
  const MatrixXd means = a.references.rowwise().mean() * b.references.rowwise().mean().transpose();
  const VectorXd a_squares = a.references.rowwise().squaredNorm();
  const VectorXd b_squares = b.references.rowwise().squaredNorm();
  const MatrixXd distances = ((-2 * dots).colwise() + a_squares).rowwise() + b_squares.transpose();
  return {scales.common * means,
          scales.differences * (dots - count * means),
          (-0.5 * scales.smooth * distances.array()).exp().matrix(),
          a.encoded.one_hot * b.encoded.one_hot.transpose(),
          a.encoded.live * b.encoded.live.transpose(),
          a.encoded.counts * b.encoded.counts.transpose()};
}

MatrixXd weighted_sum(const PartKernels& parts, const LogWeights& weights) {
  MatrixXd sum = MatrixXd::Constant(parts[0].rows(), parts[0].cols(), kLevelVariance);
  for (std::size_t i = 0; i < kParts; ++i) sum += std::exp(weights[i]) * parts[i];
  return sum;
}

VectorXd self_similarity(const Points& points, const PartScales& scales,
                         const LogWeights& weights) {
  const auto count = static_cast<double>(points.references.cols());
  const Eigen::ArrayXd squares = points.references.rowwise().squaredNorm();
  const Eigen::ArrayXd means = points.references.rowwise().mean().cwiseAbs2();
  return kLevelVariance + weight(weights, Part::common) * scales.common * means +
         weight(weights, Part::differences) * scales.differences * (squares - count * means) +
         weight(weights, Part::smooth) +
         weight(weights, Part::one_hot) * points.encoded.one_hot.rowwise().squaredNorm().array() +
         weight(weights, Part::live) * points.encoded.live.rowwise().squaredNorm().array() +
         weight(weights, Part::counts) * points.encoded.counts.rowwise().squaredNorm().array();
}

}  // namespace fleetfit::transfer
