#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fleetfit/core/names.h"
#include "fleetfit/core/result.h"

namespace fleetfit::core {
struct Fields;
}

/// How much a trial may train. A trial climbs levels: after each it is paused, and goes on with a
/// bigger budget if it is promoted.
namespace fleetfit::tune {

/// Of all that a trial has trained when the level ends, not on top of the level below.
struct Budget {
  std::int64_t epochs = 1;
  double data_fraction = 1;

  bool operator==(const Budget&) const = default;
};

enum class BudgetKind : std::uint8_t {
  multi,   ///< epochs and data grow together (EdgeTune, algorithm 2)
  epochs,  ///< all data, more and more epochs
  data,    ///< `min_epochs` epochs, more and more data
};
core::Names names_of(BudgetKind);
using core::to_string;

struct BudgetOptions {
  BudgetKind kind = BudgetKind::multi;
  std::int64_t min_epochs = 1;
  std::int64_t max_epochs = 10;
  double min_data = 0.1;
  double eta = 2;  ///< one in so many goes on to the next level
  std::size_t max_trials = 64;

  bool operator==(const BudgetOptions&) const = default;
};
core::Fields fields_of(const BudgetOptions*);

/// Fails with `invalid_input`, naming the key, on a budget that no trial could have:
/// max_epochs below min_epochs or above 10^9, min_data outside [10^-6, 1], eta below 1.1, no
/// trials.
Status check(const BudgetOptions& options);

/// The budget of iteration i, from 1: min(max_epochs, i x min_epochs) epochs on min(1, i x
/// min_data) of the data, as far as the kind lets them grow.
Budget budget_of_iteration(const BudgetOptions& options, std::int64_t iteration);

/// The first iteration with the largest budget.
std::int64_t iterations(const BudgetOptions& options);

/// The levels a trial climbs: iterations 1, eta, eta², … and the last one (a level that is within a
/// quarter of it is left out).
std::vector<Budget> levels(const BudgetOptions& options);

}  // namespace fleetfit::tune
