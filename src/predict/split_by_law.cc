#include <algorithm>
#include <optional>
#include <set>

#include "fleetfit/predict/linear_model.h"
#include "predict/kernel_rows.h"

namespace fleetfit::predict {
namespace {

constexpr std::size_t kFewValues = 8;
constexpr std::size_t kLeastRows = 16;
constexpr int kLeastNetworks = 5;
constexpr std::size_t kMostConditions = 2;
// Two lines have to be better than one by this factor, and by a percent of the price.
constexpr double kMuchBetter = 0.8;
constexpr double kPercent = 1;
// Enough to compare splits; the models that are kept look for the best penalty themselves.
constexpr LassoOptions kQuick{.lowest_alpha = 1e-3, .highest_alpha = 1e-2, .alphas = 2};

std::optional<double> error_sum(const KernelRows& rows, int folds) {
  const auto fitted =
      fit_lasso({.x = rows.rows(), .y = rows.y, .fold = rows.fold, .folds = folds}, kQuick);
  if (!fitted) return std::nullopt;
  return mape_percent(fitted->out_of_fold, rows.y) * static_cast<double>(rows.y.size());
}

// Between neighbouring values if there are few, else between zero and all others.
std::vector<double> thresholds(const KernelRows& rows, std::size_t feature) {
  std::set<double> values;
  for (std::size_t i = 0; i < rows.y.size(); ++i) values.insert(rows.rows().row(i)[feature]);
  std::vector<double> between;
  for (auto at = values.begin(); at != values.end() && std::next(at) != values.end(); ++at)
    if (values.size() <= kFewValues || *at == 0) between.push_back((*at + *std::next(at)) / 2);
  return between;
}

KernelRows part_of(const KernelRows& rows, const Condition& condition) {
  KernelRows part{.kind = rows.kind, .when = rows.when, .columns = rows.columns};
  part.when.push_back(condition);
  for (std::size_t i = 0; i < rows.y.size(); ++i)
    if (condition.holds(rows.rows().row(i)))
      part.add(rows.rows().row(i), rows.y[i], rows.network[i], rows.fold[i]);
  return part;
}

struct Split {
  KernelRows below;
  KernelRows above;
  double error = 0;
};

bool is_enough(const KernelRows& rows) {
  return rows.y.size() >= kLeastRows && rows.networks() >= kLeastNetworks;
}

std::optional<Split> try_split(const KernelRows& rows, std::size_t feature, double threshold,
                               int folds) {
  Split split{.below = part_of(rows, {feature, threshold, false}),
              .above = part_of(rows, {feature, threshold, true})};
  if (!is_enough(split.below) || !is_enough(split.above)) return std::nullopt;
  const auto below = error_sum(split.below, folds);
  const auto above = error_sum(split.above, folds);
  if (!below || !above) return std::nullopt;
  split.error = *below + *above;
  return split;
}

std::optional<Split> best_split(const KernelRows& rows, int folds) {
  std::optional<Split> best;
  std::set<std::vector<int>> tried;  // many features part the rows in the same way
  for (std::size_t feature = 0; feature < rows.columns; ++feature) {
    for (const double threshold : thresholds(rows, feature)) {
      std::vector<int> below;
      for (std::size_t i = 0; i < rows.y.size(); ++i)
        if (rows.rows().row(i)[feature] < threshold) below.push_back(static_cast<int>(i));
      if (!tried.insert(std::move(below)).second) continue;
      auto split = try_split(rows, feature, threshold, folds);
      if (split && (!best || split->error < best->error)) best = std::move(split);
    }
  }
  return best;
}

}  // namespace

std::vector<KernelRows> split_by_law(KernelRows rows, int folds) {
  std::vector<KernelRows> parts;
  const auto before = error_sum(rows, folds);
  auto split =
      before && rows.when.size() < kMostConditions ? best_split(rows, folds) : std::nullopt;
  const double margin = kPercent * static_cast<double>(rows.y.size());
  if (!split || split->error > *before * kMuchBetter || split->error > *before - margin) {
    parts.push_back(std::move(rows));
    return parts;
  }
  for (auto* half : {&split->below, &split->above})
    for (auto& part : split_by_law(std::move(*half), folds)) parts.push_back(std::move(part));
  return parts;
}

}  // namespace fleetfit::predict
