#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <optional>

#include "fleetfit/space/design.h"
#include "fleetfit/space/space.h"

namespace fleetfit::transfer {

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
