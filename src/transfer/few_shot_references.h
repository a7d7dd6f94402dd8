#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "fleetfit/space/design.h"
#include "fleetfit/space/space.h"

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

/// Designs in the encodings that every space has. Columns are centred, and the rows of each block
/// have a mean square length of 1 over the designs that the encoder was made from.
struct EncodedDesigns {
  Eigen::MatrixXd one_hot;
  Eigen::MatrixXd live;
  Eigen::MatrixXd counts;
  Eigen::MatrixXd amounts;  ///< the encoding "genes"; no columns where no gene has amounts, nor
                            ///< where only kernels need the designs

  Eigen::Index size() const { return one_hot.rows(); }
};

/// Centre and scale of columns. A constant column becomes 0.
struct Standardizer {
  Eigen::RowVectorXd centre;
  Eigen::RowVectorXd factor;

  Eigen::MatrixXd apply(const Eigen::MatrixXd& rows) const;
};

/// Each column gets a mean of 0 and a mean square of 1.
Standardizer standardize_columns(const Eigen::MatrixXd& rows);

/// Writes designs as numbers for kernels and for linear models.
class FewShotEncoder {
 public:
  /// `typical` designs say what is usual; they are not kept.
  FewShotEncoder(const space::Space& space, space::DesignBatch typical);

  EncodedDesigns encode(space::DesignBatch designs) const;

  /// Columns for a linear model: all encodings, and products of counts, of about equal size.
  Eigen::MatrixXd regression_columns(const EncodedDesigns& designs) const;

 private:
  struct Block {
    std::size_t encoding = 0;
    Standardizer scaling;
  };

  static Block make_block(const space::Space& space, std::string_view encoding,
                          space::DesignBatch typical);
  Eigen::MatrixXd products(const Eigen::MatrixXd& counts) const;

  const space::Space* space_;
  Block one_hot_;
  Block live_;
  Block counts_;
  std::optional<Block> amounts_;
  Standardizer one_hot_columns_;
  Standardizer live_columns_;  // empty where no design has dead paths
  Standardizer count_columns_;
  Standardizer amount_columns_;
  Standardizer product_columns_;
};

}  // namespace fleetfit::transfer
