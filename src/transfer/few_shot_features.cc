#include "transfer/few_shot_features.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>

namespace fleetfit::transfer {
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
