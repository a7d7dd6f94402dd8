#include "predict/regressors/product_model.h"

#include <nlohmann/json.hpp>

namespace fleetfit::predict {

void ProductModel::predict(const MatrixView& rows, std::span<double> out) const {
  correction_.predict(rows, out);
  std::vector<double> prices(out.size());
  linear_.predict(rows, prices);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] *= prices[i];
}

nlohmann::json ProductModel::to_json() const {
  return {
      {"type", "product"}, {"linear", linear_.to_json()}, {"correction", correction_.to_json()}};
}

Result<std::unique_ptr<Regressor>> ProductModel::from_json(const core::JsonView& json,
                                                           std::size_t features) {
  FLEETFIT_ASSIGN(const auto linear_json, json.at("linear"));
  FLEETFIT_ASSIGN(const auto linear, LinearModel::from_json(linear_json, features));
  FLEETFIT_ASSIGN(const auto correction_json, json.at("correction"));
  FLEETFIT_ASSIGN(const auto correction, TreeModel::from_json(correction_json, features));
  return std::make_unique<ProductModel>(dynamic_cast<const LinearModel&>(*linear),
                                        dynamic_cast<const TreeModel&>(*correction));
}

}  // namespace fleetfit::predict
