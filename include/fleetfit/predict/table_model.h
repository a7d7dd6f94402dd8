#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "fleetfit/predict/linear_model.h"
#include "fleetfit/predict/regressor.h"

namespace fleetfit::predict {

/// One entry for each row that was measured. A row without an entry costs what the nearest one
/// does, times the factor that a linear model sees between them.
class TableModel final : public Regressor {
 public:
  /// Sorted by row; every row has as many numbers as the guide takes; times are positive.
  using Entries = std::map<std::vector<double>, double>;

  TableModel(Entries entries, LinearModel guide);

  bool knows(std::span<const double> row) const override;
  std::size_t size() const { return entries_.size(); }

  std::size_t features() const override { return guide_.features(); }
  void predict(const MatrixView& rows, std::span<double> out) const override;
  nlohmann::json to_json() const override;

  static Result<std::unique_ptr<Regressor>> from_json(const core::JsonView& json,
                                                      std::size_t features);

 private:
  double price(std::span<const double> row) const;

  Entries entries_;
  std::vector<double> logs_;  // of all entries' features, in order
  LinearModel guide_;
};

/// The median time of equal rows.
Result<FittedRegressor> fit_table(const TrainingSet& set);

}  // namespace fleetfit::predict
