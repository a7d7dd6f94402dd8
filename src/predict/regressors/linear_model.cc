#include "fleetfit/predict/linear_model.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "predict/model_fields.h"

namespace fleetfit::predict {

void LinearModel::predict(const MatrixView& rows, std::span<double> out) const {
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const auto row = rows.row(i);
    out[i] = std::inner_product(row.begin(), row.end(), weights_.begin(), intercept_);
  }
}

nlohmann::json LinearModel::to_json() const {
  return {{"type", "linear"}, {"intercept", intercept_}, {"weights", weights_}};
}

Result<std::unique_ptr<Regressor>> LinearModel::from_json(const core::JsonView& json,
                                                          std::size_t features) {
  FLEETFIT_ASSIGN(const auto intercept, json.number("intercept"));
  FLEETFIT_ASSIGN(auto weights, numbers_of_length(json, "weights", features));
  return std::make_unique<LinearModel>(intercept, std::move(weights));
}

}  // namespace fleetfit::predict
