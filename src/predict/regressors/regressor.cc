#include "fleetfit/predict/regressor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "fleetfit/core/counting.h"
#include "fleetfit/predict/dense_network.h"
#include "fleetfit/predict/linear_model.h"
#include "fleetfit/predict/table_model.h"
#include "fleetfit/predict/tree_model.h"

namespace fleetfit::predict {
namespace {

using ReadRegressor = Result<std::unique_ptr<Regressor>> (*)(const core::JsonView& json,
                                                             std::size_t features);

constexpr std::array kTypes = {
    std::pair<std::string_view, ReadRegressor>{"linear", &LinearModel::from_json},
    std::pair<std::string_view, ReadRegressor>{"trees", &TreeModel::from_json},
    std::pair<std::string_view, ReadRegressor>{"product", &ProductModel::from_json},
    std::pair<std::string_view, ReadRegressor>{"mlp", &DenseNetwork::from_json},
    std::pair<std::string_view, ReadRegressor>{"table", &TableModel::from_json},
};

Status check_row(const TrainingSet& set, std::size_t i) {
  for (const double value : set.x.row(i)) {
    if (!std::isfinite(value)) {
      return refuse(fmt::format("row {}: a feature is {}, which is no finite number", i, value));
    }
  }
  if (!std::isfinite(set.y[i]) || set.y[i] <= 0) {
    return refuse(fmt::format("row {}: {} is no positive number", i, set.y[i]));
  }
  if (set.fold[i] < 0 || set.fold[i] >= set.folds) {
    return refuse(fmt::format("row {}: fold {} is none of {}", i, set.fold[i], set.folds));
  }
  return {};
}

std::vector<double> exchange_column(const MatrixView& rows, std::size_t column,
                                    core::Random random) {
  std::vector<double> values(rows.values.begin(), rows.values.end());
  std::vector<double> cells;
  for (std::size_t i = 0; i < rows.rows(); ++i) cells.push_back(rows.row(i)[column]);
  random.shuffle(cells);
  for (std::size_t i = 0; i < cells.size(); ++i) values[i * rows.columns + column] = cells[i];
  return values;
}

}  // namespace

double Regressor::predict_one(std::span<const double> row) const {
  double value = 0;
  predict({.values = row, .columns = row.size()}, std::span(&value, 1));
  return value;
}

bool Regressor::knows(std::span<const double> /*row*/) const { return true; }

Result<std::unique_ptr<Regressor>> regressor_from_json(const core::JsonView& json,
                                                       std::size_t features) {
  FLEETFIT_ASSIGN(const auto type, json.text("type"));
  for (const auto& [name, read] : kTypes)
    if (type == name) return read(json, features);
  return json.at("type")->error(fmt::format("there is no model of type '{}'", type));
}

std::vector<double> importance(const Regressor& model, const MatrixView& rows,
                               const core::Random& random) {
  std::vector<double> answers(rows.rows());
  model.predict(rows, answers);
  std::vector<double> shares(rows.columns, 0.0);
  for (std::size_t j = 0; j < rows.columns; ++j) {
    auto exchanged = exchange_column(rows, j, random.split(j));
    std::vector<double> others(rows.rows());
    model.predict({.values = exchanged, .columns = rows.columns}, others);
    for (std::size_t i = 0; i < others.size(); ++i)
      shares[j] += std::abs(others[i] - answers[i]) / std::max(std::abs(answers[i]), 1e-300);
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum > 0)
    for (double& share : shares) share /= sum;
  return shares;
}

std::vector<int> deal_folds(std::size_t rows, int folds, core::Random random) {
  auto order = core::counting(rows);
  random.shuffle(order);
  std::vector<int> fold(rows);
  for (std::size_t i = 0; i < rows; ++i)
    fold[order[i]] = static_cast<int>(i % static_cast<std::size_t>(folds));
  return fold;
}

double mape_percent(std::span<const double> predicted, std::span<const double> measured) {
  double sum = 0;
  for (std::size_t i = 0; i < measured.size(); ++i)
    sum += std::abs(predicted[i] - measured[i]) / measured[i];
  return measured.empty() ? 0 : 100 * sum / static_cast<double>(measured.size());
}

Status check_set(const TrainingSet& set) {
  const std::size_t rows = set.y.size();
  if (rows == 0) return refuse("there are no rows to fit a model to");
  if (set.x.columns == 0 || set.x.values.size() != rows * set.x.columns ||
      set.fold.size() != rows) {
    return refuse(
        fmt::format("{} times, {} features of {} columns and {} folds do not fit together", rows,
                    set.x.values.size(), set.x.columns, set.fold.size()));
  }
  for (std::size_t i = 0; i < rows; ++i) FLEETFIT_TRY(check_row(set, i));
  return {};
}

}  // namespace fleetfit::predict
