#include "fleetfit/predict/table_model.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "fleetfit/core/statistics.h"
#include "predict/documents.h"
#include "predict/uncertainty.h"

namespace fleetfit::predict {
namespace {

using Groups = std::map<std::vector<double>, std::vector<double>>;

std::vector<double> copy_of(std::span<const double> row) { return {row.begin(), row.end()}; }

// Rows of all folds but one; of all folds for -1.
TableModel::Entries medians(const TrainingSet& set, int without) {
  Groups groups;
  for (std::size_t i = 0; i < set.x.rows(); ++i)
    if (set.fold[i] != without) groups[copy_of(set.x.row(i))].push_back(set.y[i]);
  TableModel::Entries entries;
  for (const auto& [row, times] : groups) entries.emplace(row, *core::median(times));
  return entries;
}

}  // namespace

TableModel::TableModel(Entries entries, LinearModel guide)
    : entries_(std::move(entries)), guide_(std::move(guide)) {
  for (const auto& [row, ms] : entries_) {
    const auto logs = log_features(row);
    logs_.insert(logs_.end(), logs.begin(), logs.end());
  }
}

bool TableModel::knows(std::span<const double> row) const {
  return entries_.contains(copy_of(row));
}

double TableModel::price(std::span<const double> row) const {
  if (const auto found = entries_.find(copy_of(row)); found != entries_.end()) return found->second;
  const auto* nearest = &*entries_.begin();
  double least = std::numeric_limits<double>::infinity();
  const auto logs = log_features(row);
  auto others = std::span(logs_);
  for (const auto& entry : entries_) {
    const double away = distance_of_logs(logs, others.first(logs.size()));
    others = others.subspan(logs.size());
    if (away < least) {
      least = away;
      nearest = &entry;
    }
  }
  const double there = guide_.predict_one(nearest->first);
  const double here = guide_.predict_one(row);
  return there > 0 && here > 0 ? nearest->second * here / there : nearest->second;
}

void TableModel::predict(const MatrixView& rows, std::span<double> out) const {
  for (std::size_t i = 0; i < rows.rows(); ++i) out[i] = price(rows.row(i));
}

nlohmann::json TableModel::to_json() const {
  auto rows = nlohmann::json::array();
  auto times = nlohmann::json::array();
  for (const auto& [row, ms] : entries_) {
    rows.push_back(row);
    times.push_back(ms);
  }
  return {{"type", "table"},
          {"rows", std::move(rows)},
          {"ms", std::move(times)},
          {"guide", guide_.to_json()}};
}

Result<std::unique_ptr<Regressor>> TableModel::from_json(const core::JsonView& json,
                                                         std::size_t features) {
  FLEETFIT_ASSIGN(const auto rows, json.items("rows"));
  FLEETFIT_ASSIGN(const auto times, numbers_of_length(json, "ms", rows.size()));
  if (rows.empty()) return json.error("a table needs at least one entry");
  FLEETFIT_ASSIGN(const auto guide_json, json.at("guide"));
  FLEETFIT_ASSIGN(const auto guide, LinearModel::from_json(guide_json, features));

  Entries entries;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    FLEETFIT_ASSIGN(auto row, rows[i].as_numbers());
    if (row.size() != features)
      return rows[i].error(fmt::format("expected {} numbers, found {}", features, row.size()));
    if (!(times[i] > 0))
      return json.at("ms")->error(fmt::format("row {}: {} is not positive", i, times[i]));
    entries.emplace(std::move(row), times[i]);
  }
  return std::make_unique<TableModel>(std::move(entries), dynamic_cast<const LinearModel&>(*guide));
}

Result<FittedRegressor> fit_table(const TrainingSet& set) {
  FLEETFIT_ASSIGN(const auto guide, fit_lasso(set));
  const auto& linear = dynamic_cast<const LinearModel&>(*guide.model);
  FittedRegressor fitted;
  fitted.out_of_fold.resize(set.x.rows());
  for (int fold = 0; fold < set.folds; ++fold) {
    auto entries = medians(set, fold);
    if (entries.empty()) entries = medians(set, -1);
    const TableModel model(std::move(entries), linear);
    for (std::size_t i = 0; i < set.x.rows(); ++i)
      if (set.fold[i] == fold) fitted.out_of_fold[i] = model.predict_one(set.x.row(i));
  }
  auto model = std::make_unique<TableModel>(medians(set, -1), linear);
  fitted.settings = fmt::format("{} entries", model->size());
  fitted.model = std::move(model);
  return fitted;
}

}  // namespace fleetfit::predict
