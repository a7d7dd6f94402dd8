#include "transfer/few_shot_references.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

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

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Products of more kinds than these would be too many columns.
constexpr Index kMostKindsToMultiply = 16;
/// How much columns may contribute at equal penalty: first how many operators of each kind there
/// are, then together with which others, then where they stand.
constexpr double kProductWeight = 0.4;
constexpr double kPlaceWeight = 0.5;

MatrixXd raw_encoding(const space::Space& space, std::size_t encoding, space::DesignBatch designs) {
  const std::size_t width = space.encodings()[encoding].features.size();
  RowMajor rows(static_cast<Index>(designs.size()), static_cast<Index>(width));
  space.encode(designs, encoding, std::span(rows.data(), designs.size() * width));
  return rows;
}

double inverse_root(double mean_square) {
  constexpr double kConstant = 1e-18;
  return mean_square > kConstant ? 1 / std::sqrt(mean_square) : 0;
}

/// Centres columns and gives rows a mean square length of 1.
Standardizer standardize_rows(const MatrixXd& rows) {
  Standardizer scaling{.centre = rows.colwise().mean()};
  const double squares = (rows.rowwise() - scaling.centre).rowwise().squaredNorm().mean();
  scaling.factor = Eigen::RowVectorXd::Constant(rows.cols(), inverse_root(squares));
  return scaling;
}

}  // namespace

MatrixXd Standardizer::apply(const MatrixXd& rows) const {
  return (rows.rowwise() - centre) * factor.asDiagonal();
}

Standardizer standardize_columns(const MatrixXd& rows) {
  Standardizer scaling{.centre = rows.colwise().mean()};
  scaling.factor =
      (rows.rowwise() - scaling.centre).colwise().squaredNorm() / static_cast<double>(rows.rows());
  for (double& factor : scaling.factor) factor = inverse_root(factor);
  return scaling;
}

FewShotEncoder::Block FewShotEncoder::make_block(const space::Space& space,
                                                 std::string_view encoding,
                                                 space::DesignBatch typical) {
  const auto number = space.find_encoding(encoding);
  assert(number.has_value());  // every space has it
  return {.encoding = *number, .scaling = standardize_rows(raw_encoding(space, *number, typical))};
}

FewShotEncoder::FewShotEncoder(const space::Space& space, space::DesignBatch typical)
    : space_(&space),
      one_hot_(make_block(space, "one-hot", typical)),
      live_(make_block(space, "live", typical)),
      counts_(make_block(space, "counts", typical)) {
  const auto has_amounts = [](const space::Gene& gene) { return !gene.values.empty(); };
  if (std::ranges::any_of(space.genes(), has_amounts))
    amounts_ = make_block(space, "genes", typical);
  const EncodedDesigns encoded = encode(typical);
  amount_columns_ = standardize_columns(encoded.amounts);
  one_hot_columns_ = standardize_columns(encoded.one_hot);
  one_hot_columns_.factor *= kPlaceWeight;
  if (encoded.live != encoded.one_hot) {
    live_columns_ = standardize_columns(encoded.live);
    live_columns_.factor *= kPlaceWeight;
  }
  count_columns_ = standardize_columns(encoded.counts);
  if (encoded.counts.cols() <= kMostKindsToMultiply) {
    product_columns_ = standardize_columns(products(count_columns_.apply(encoded.counts)));
    product_columns_.factor *= kProductWeight;
  }
}

EncodedDesigns FewShotEncoder::encode(space::DesignBatch designs) const {
  const auto block = [&](const Block& one) {
    return one.scaling.apply(raw_encoding(*space_, one.encoding, designs));
  };
  return {.one_hot = block(one_hot_),
          .live = block(live_),
          .counts = block(counts_),
          .amounts = amounts_ ? block(*amounts_) : MatrixXd(static_cast<Index>(designs.size()), 0)};
}

/// Of each two columns, and the squares.
MatrixXd FewShotEncoder::products(const MatrixXd& counts) const {
  const Index kinds = counts.cols();
  MatrixXd out(counts.rows(), kinds * (kinds + 1) / 2);
  Index column = 0;
  for (Index i = 0; i < kinds; ++i) {
    for (Index j = 0; j <= i; ++j) out.col(column++) = counts.col(i).cwiseProduct(counts.col(j));
  }
  return out;
}

MatrixXd FewShotEncoder::regression_columns(const EncodedDesigns& designs) const {
  const Index one_hot = one_hot_columns_.factor.size();
  const Index live = live_columns_.factor.size();
  const Index counts = count_columns_.factor.size();
  const Index product = product_columns_.factor.size();
  const Index amounts = amount_columns_.factor.size();
  MatrixXd out(designs.size(), one_hot + live + counts + amounts + product);
  out.leftCols(one_hot) = one_hot_columns_.apply(designs.one_hot);
  if (live > 0) out.middleCols(one_hot, live) = live_columns_.apply(designs.live);
  const MatrixXd standard_counts = count_columns_.apply(designs.counts);
  out.middleCols(one_hot + live, counts) = standard_counts;
  out.middleCols(one_hot + live + counts, amounts) = amount_columns_.apply(designs.amounts);
  if (product > 0) out.rightCols(product) = product_columns_.apply(products(standard_counts));
  return out;
}

}  // namespace fleetfit::transfer
