#include "learned/network_kinship.h"

#include <algorithm>
#include <cmath>

namespace fleetfit::learned {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

Vector vector_of(std::span<const double> values) {
  return Eigen::Map<const Vector>(values.data(), static_cast<Eigen::Index>(values.size()));
}

double correlation(const Vector& a, const Vector& b, double length) {
  return std::exp(-(a - b).squaredNorm() / (2 * length * length));
}

}  // namespace

NetworkKinship::NetworkKinship(const std::vector<std::vector<double>>& features, double length,
                               double nugget)
    : length_(length), nugget_(nugget) {
  const auto count = static_cast<Eigen::Index>(features.size());
  Matrix raw(count, features.front().size());
  for (Eigen::Index i = 0; i < count; ++i)
    raw.row(i) = vector_of(features[static_cast<std::size_t>(i)]).transpose();
  mean_ = raw.colwise().mean();
  const Matrix centred = raw.rowwise() - mean_.transpose();
  inverse_spread_ = (centred.colwise().squaredNorm().transpose() / static_cast<double>(count))
                        .unaryExpr([](double variance) {
                          return variance > 1e-12 ? 1 / std::sqrt(variance) : 0.0;
                        });
  networks_ = centred * inverse_spread_.asDiagonal();
  correlations_.resize(count, count);
  for (Eigen::Index i = 0; i < count; ++i)
    for (Eigen::Index j = 0; j < count; ++j)
      correlations_(i, j) = correlation(networks_.row(i), networks_.row(j), length_);
  trends_.resize(count, 3);
  for (Eigen::Index i = 0; i < count; ++i)
    trends_.row(i) = trend_of(features[static_cast<std::size_t>(i)]).transpose();
  const Matrix with_nugget = correlations_ + nugget_ * Matrix::Identity(count, count);
  inverse_ = with_nugget.ldlt().solve(Matrix::Identity(count, count));
  const Matrix information =
      trends_.transpose() * inverse_ * trends_ + 1e-6 * Matrix::Identity(3, 3);
  trend_inverse_ = information.ldlt().solve(Matrix::Identity(3, 3));
}

Vector NetworkKinship::scaled(std::span<const double> network) const {
  return (vector_of(network) - mean_).cwiseProduct(inverse_spread_);
}

/// A constant, the logarithm of all operations and the last feature, the share of int8.
Vector NetworkKinship::trend_of(std::span<const double> network) const {
  double operations = 1;
  for (const std::size_t flops : {0, 4, 8}) operations += std::expm1(network[flops]);
  return Eigen::Vector3d(1, std::log(operations) - 13, network.back());
}

NetworkKinship::Composition NetworkKinship::compose(std::span<const double> network) const {
  const Vector place = scaled(network);
  Vector near(networks_.rows());
  for (Eigen::Index i = 0; i < near.size(); ++i)
    near[i] = correlation(networks_.row(i), place, length_);
  const Vector trend_error = trend_of(network) - trends_.transpose() * (inverse_ * near);
  const Vector from_trend = trend_inverse_ * trend_error;
  return {
      .weights = inverse_ * (near + trends_ * from_trend),
      .rest = std::max(0.0, 1 + nugget_ - near.dot(inverse_ * near) + trend_error.dot(from_trend))};
}

}  // namespace fleetfit::learned
