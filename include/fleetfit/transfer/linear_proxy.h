#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/design_index.h"
#include "fleetfit/space/space.h"
#include "fleetfit/space/table.h"

namespace fleetfit::core {
struct Fields;
}

/// A known device's latency as a sum over the operators of a network.
namespace fleetfit::transfer {

/// What operators cost. A design costs the constant and the price of each operator in it; an
/// operator that has a way to the output also costs its live price. A runtime that removes dead
/// paths has live prices alone, one that runs all of them has none.
struct OperatorPrices {
  double constant = 0;
  std::vector<double> placed = {};  ///< for each column of "one-hot" but its last one, or empty
  std::vector<double> live = {};    ///< for each column of "live" but its last one, or empty
};
core::Fields fields_of(const OperatorPrices*);

/// Columns of "one-hot" that stand for an operator: all but the constant.
std::size_t operator_columns(const space::Space& space);

/// Whether networks of the space can have operators that work for nothing.
bool has_dead_paths(const space::Space& space);

/// All designs of the space in the order of `Space::next`; nothing if there are more than a number
/// can be kept for each.
std::optional<space::DesignIndex> all_designs(const space::Space& space);

/// Adds prices up, quickly. Immutable; safe to use from many threads; the space must outlive it.
class OperatorPricer {
 public:
  /// The prices have to fit the space.
  OperatorPricer(const space::Space& space, OperatorPrices prices);

  const OperatorPrices& prices() const { return prices_; }
  void price(space::DesignBatch designs, std::span<double> out) const;

 private:
  /// A slot of a space whose slots all hold something in every design.
  struct FixedSlot {
    std::size_t first_column;
    std::vector<std::pair<std::size_t, std::size_t>> genes;  // with the number of their choices
  };
  void price_fixed(space::DesignBatch designs, std::span<double> out) const;
  void add_taken(space::DesignBatch designs, std::string_view encoding,
                 std::span<const double> prices, std::span<double> out) const;

  const space::Space* space_;
  OperatorPrices prices_;
  std::vector<FixedSlot> fixed_;  // empty: the space has to be asked what is in each design
};

struct LinearFit {
  OperatorPrices prices = {};
  std::string encoding = {};  ///< "one-hot", "live" or "both"
  double held_out_srcc = 0;   ///< rank correlation for designs that the fit did not see
};

/// Fits prices to latencies of designs, all of them finite. Whether all paths or only live ones
/// cost, and whether prices below 0 are left out, is chosen by a fifth of the designs that are held
/// out; then all are used. Fails with `invalid_input` on fewer than 10 designs or equal latencies.
Result<LinearFit> fit_operator_prices(const space::Space& space, space::DesignBatch designs,
                                      std::span<const double> latency_ms);

/// A device that predicts others. Where every design of the space was measured on it, the
/// measurements themselves are its prices, else the sum over operators.
class LinearProxy {
 public:
  /// From a column of a table; empty cells are left out. Fails as `fit_operator_prices` does,
  /// naming table and column.
  static Result<LinearProxy> fit(const space::DesignTable& table, std::size_t column);

  /// From prices that are known; `latency_ms` holds the latency of every design in the order of
  /// `Space::next`, or nothing.
  LinearProxy(std::string name, const space::Space& space, LinearFit fit,
              std::vector<double> latency_ms = {});

  const std::string& name() const { return name_; }
  const space::Space& space() const { return *space_; }
  const LinearFit& model() const { return fit_; }

  /// What each operator costs more than the cheapest that could stand in its place; never negative.
  /// One for each column of "one-hot" but its last one.
  std::span<const double> operator_costs() const { return operator_costs_; }

  /// Latency of every design in the order of `Space::next`; empty if not all were measured.
  std::span<const double> all_latencies_ms() const { return all_ms_; }

  /// Safe to call from many threads.
  void price(space::DesignBatch designs, std::span<double> out) const;

 private:
  std::string name_;
  const space::Space* space_;
  LinearFit fit_;
  std::vector<double> operator_costs_;
  OperatorPricer pricer_;
  std::vector<double> all_ms_;
  std::optional<space::DesignIndex> all_designs_;  // where all_ms_ is known
};

}  // namespace fleetfit::transfer
