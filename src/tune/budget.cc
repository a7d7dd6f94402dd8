#include "fleetfit/tune/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fleetfit/core/fields.h"

namespace fleetfit::tune {
namespace {

// Beyond these, levels would be too many to count.
constexpr std::int64_t kMostEpochs = 1'000'000'000;
constexpr double kLeastData = 1e-6;
constexpr double kLeastEta = 1.1;

/// Iterations until a share that grows by `step` is whole; 0.1 ten times is a little less than 1.
std::int64_t steps_to(double whole, double step) {
  return static_cast<std::int64_t>(std::ceil(whole / step - 1e-9));
}

Status check_epochs(const BudgetOptions& options) {
  if (options.min_epochs < 1) {
    return core::refuse(fmt::format("min_epochs: {} is less than 1", options.min_epochs));
  }
  if (options.max_epochs < options.min_epochs) {
    return core::refuse(fmt::format("max_epochs: {} is less than min_epochs ({})",
                                    options.max_epochs, options.min_epochs));
  }
  if (options.max_epochs > kMostEpochs) {
    return core::refuse(
        fmt::format("max_epochs: {} is more than {}", options.max_epochs, kMostEpochs));
  }
  return {};
}

}  // namespace

core::Names names_of(BudgetKind) {
  static constexpr core::Name kAll[] = {
      {BudgetKind::multi, "multi"}, {BudgetKind::epochs, "epochs"}, {BudgetKind::data, "data"}};
  return {.what = "kind of budget", .all = kAll};
}

core::Fields fields_of(const BudgetOptions*) {
  static constexpr core::Field kAll[] = {
      core::field<&BudgetOptions::kind>("kind").may_be_missing(),
      core::field<&BudgetOptions::min_epochs>("min_epochs").may_be_missing(),
      core::field<&BudgetOptions::max_epochs>("max_epochs").may_be_missing(),
      core::field<&BudgetOptions::min_data>("min_data").may_be_missing(),
      core::field<&BudgetOptions::eta>("eta").may_be_missing(),
      core::field<&BudgetOptions::max_trials>("max_trials").between(1, 1e9).may_be_missing()};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

Status check(const BudgetOptions& options) {
  FLEETFIT_TRY(check_epochs(options));
  if (!(options.min_data >= kLeastData && options.min_data <= 1)) {
    return core::refuse(
        fmt::format("min_data: {} is not between {} and 1", options.min_data, kLeastData));
  }
  if (!(options.eta >= kLeastEta) || !std::isfinite(options.eta)) {
    return core::refuse(fmt::format("eta: {} is not {} or more", options.eta, kLeastEta));
  }
  if (options.max_trials == 0) {
    return core::refuse("max_trials: 0 leaves nothing to try");
  }
  return {};
}

Budget budget_of_iteration(const BudgetOptions& options, std::int64_t iteration) {
  Budget budget = {.epochs = options.min_epochs, .data_fraction = 1};
  if (options.kind != BudgetKind::data) {
    // Without a product that could overflow.
    budget.epochs = iteration >= steps_to(static_cast<double>(options.max_epochs),
                                          static_cast<double>(options.min_epochs))
                        ? options.max_epochs
                        : iteration * options.min_epochs;
  }
  if (options.kind != BudgetKind::epochs) {
    budget.data_fraction = iteration >= steps_to(1, options.min_data)
                               ? 1
                               : static_cast<double>(iteration) * options.min_data;
  }
  return budget;
}

std::int64_t iterations(const BudgetOptions& options) {
  const std::int64_t for_epochs = options.kind == BudgetKind::data
                                      ? 1
                                      : steps_to(static_cast<double>(options.max_epochs),
                                                 static_cast<double>(options.min_epochs));
  const std::int64_t for_data =
      options.kind == BudgetKind::epochs ? 1 : steps_to(1, options.min_data);
  return std::max(for_epochs, for_data);
}

std::vector<Budget> levels(const BudgetOptions& options) {
  const std::int64_t last = iterations(options);
  std::vector<Budget> budgets;
  std::int64_t before = 0;
  for (double at = 1; at * 1.25 < static_cast<double>(last); at *= options.eta) {
    const auto iteration = static_cast<std::int64_t>(std::llround(at));
    if (iteration != before) {
      budgets.push_back(budget_of_iteration(options, iteration));
    }
    before = iteration;
  }
  budgets.push_back(budget_of_iteration(options, last));
  return budgets;
}

}  // namespace fleetfit::tune
