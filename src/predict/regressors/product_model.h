#pragma once

#include <memory>

#include "fleetfit/predict/linear_model.h"
#include "fleetfit/predict/tree_model.h"

namespace fleetfit::predict {

/// A linear model times the correction that trees give: the first knows how prices grow beyond
/// what was measured, the second how well the device does what it was measured with.
class ProductModel final : public Regressor {
 public:
  /// Both take rows of the same length.
  ProductModel(LinearModel linear, TreeModel correction)
      : linear_(std::move(linear)), correction_(std::move(correction)) {}

  std::size_t features() const override { return linear_.features(); }
  void predict(const MatrixView& rows, std::span<double> out) const override;
  nlohmann::json to_json() const override;

  static Result<std::unique_ptr<Regressor>> from_json(const core::JsonView& json,
                                                      std::size_t features);

 private:
  LinearModel linear_;
  TreeModel correction_;
};

}  // namespace fleetfit::predict
