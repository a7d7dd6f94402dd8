#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fleetfit/predict/regressor.h"

namespace fleetfit::predict {

/// intercept + sum of weight x feature. Serves beyond the range that it was fitted to, as no
/// weight of a fitted one is negative: more work never costs less.
class LinearModel final : public Regressor {
 public:
  LinearModel(double intercept, std::vector<double> weights)
      : intercept_(intercept), weights_(std::move(weights)) {}

  double intercept() const { return intercept_; }
  std::span<const double> weights() const { return weights_; }

  std::size_t features() const override { return weights_.size(); }
  void predict(const MatrixView& rows, std::span<double> out) const override;
  nlohmann::json to_json() const override;

  static Result<std::unique_ptr<Regressor>> from_json(const core::JsonView& json,
                                                      std::size_t features);

 private:
  double intercept_;
  std::vector<double> weights_;
};

struct LassoOptions {
  double lowest_alpha = 1e-5;
  double highest_alpha = 1e2;
  int alphas = 29;  ///< points of the grid, evenly spaced on a logarithmic scale
};

/// Linear regression with non-negative weights and an L1 penalty on the squared percentage error:
/// the mean of |(b + w x_i - y_i) / y_i|^2 + alpha sum(w), with w >= 0 and b >= 0.
/// Features are divided by their standard deviation and not shifted, and y by its median, so that
/// alpha means the same for every device and kind of kernel. The intercept b, the price of a call
/// whatever its size, is not penalized; it must not be negative either, or small kernels would
/// have negative prices. Alpha is the one of the grid with the least error in cross-validation.
/// The minimum is exact: the error of each fold's model is below what a double can tell.
Result<FittedRegressor> fit_lasso(const TrainingSet& set, const LassoOptions& options = {});

/// Linear regression with an L2 penalty on the squared percentage error; weights may be negative.
/// The strength of the penalty is the one with the least error in cross-validation.
Result<FittedRegressor> fit_ridge(const TrainingSet& set);

}  // namespace fleetfit::predict
