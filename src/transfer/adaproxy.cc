#include "fleetfit/transfer/adaproxy.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/core/plausible.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/space/design.h"
#include "transfer/correction.h"

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// --- directions ---

enum class Paths : std::uint8_t { all, live };

/// Something whose price may differ between devices: an operator at one place, all operators of a
/// kind, all choices of a place. A design has as much of it as the amounts of its columns add up
/// to.
struct Direction {
  std::string name = {};
  Paths paths = Paths::all;
  std::vector<std::pair<std::size_t, double>> amounts = {};  ///< by column of "one-hot" or "live"
};

// A change of a cheap operator is held for likely, too: it counts as if it cost this share of a
// usual one.
constexpr double kLeastCost = 0.3;

class Builder {
 public:
  explicit Builder(const LinearProxy& proxy)
      : space_(proxy.space()),
        costs_(proxy.operator_costs().begin(), proxy.operator_costs().end()),
        one_hot_(space_.encodings()[*space_.find_encoding("one-hot")].features),
        kinds_(space_.encodings()[*space_.find_encoding("counts")].features) {
    std::vector<double> positive;
    std::ranges::copy_if(costs_, std::back_inserter(positive),
                         [](double cost) { return cost > 0; });
    usual_ = core::median(positive).value_or(1.0);
  }

  double usual() const { return usual_; }
  double cost(std::size_t column) const { return costs_[column]; }

  /// Single operators, each by its weight.
  template <class Weight>
  void add_operators(std::vector<Direction>& set, Paths paths, const Weight& weight) const {
    for (std::size_t column = 0; column < costs_.size(); ++column) {
      set.push_back(
          {.name = one_hot_[column], .paths = paths, .amounts = {{column, weight(column)}}});
    }
  }

  /// How often a kind occurs.
  void add_kinds(std::vector<Direction>& set, Paths paths) const {
    auto kinds = kinds_with_names("");
    const auto counts = space_.column_counts();
    const auto most = largest_amounts();
    for (std::size_t column = 0; column < counts.size(); ++column) {
      const auto& [kind, amount] = counts[column];
      kinds[kind].amounts.emplace_back(column, usual_ * amount / most[kind]);
    }
    append(set, std::move(kinds), paths);
  }

  /// What a kind costs on the proxy.
  void add_priced_kinds(std::vector<Direction>& set, Paths paths) const {
    auto kinds = kinds_with_names(" by cost");
    const auto counts = space_.column_counts();
    for (std::size_t column = 0; column < counts.size(); ++column)
      if (costs_[column] > 0)
        kinds[counts[column].kind].amounts.emplace_back(column, costs_[column]);
    append(set, std::move(kinds), paths);
  }

  /// How often a kind occurs late rather than early, and at the ends rather than in the middle: an
  /// operator costs more or less as the network gets smaller and wider.
  void add_kinds_by_place(std::vector<Direction>& set, Paths paths) const {
    auto late = kinds_with_names(", late rather than early");
    auto outer = kinds_with_names(", at the ends rather than in the middle");
    const auto counts = space_.column_counts();
    const auto most = largest_amounts();
    const auto last = static_cast<double>(std::max<std::size_t>(1, space_.slots().size() - 1));
    std::size_t column = 0;
    for (std::size_t slot = 0; slot < space_.slots().size(); ++slot) {
      const double place = 2 * static_cast<double>(slot) / last - 1;
      for (const std::size_t end = column + choices_of(slot); column < end; ++column) {
        const auto& [kind, amount] = counts[column];
        const double weight = usual_ * amount / most[kind];
        late[kind].amounts.emplace_back(column, weight * place);
        outer[kind].amounts.emplace_back(column, weight * (1.5 * place * place - 0.5));
      }
    }
    append(set, std::move(late), paths);
    append(set, std::move(outer), paths);
  }

  /// What a place costs on the proxy.
  void add_priced_slots(std::vector<Direction>& set, Paths paths) const {
    std::vector<Direction> slots;
    std::size_t column = 0;
    for (std::size_t slot = 0; slot < space_.slots().size(); ++slot) {
      Direction direction{.name = space_.slots()[slot].name};
      for (const std::size_t end = column + choices_of(slot); column < end; ++column)
        if (costs_[column] > 0) direction.amounts.emplace_back(column, costs_[column]);
      slots.push_back(std::move(direction));
    }
    append(set, std::move(slots), paths);
  }

 private:
  std::size_t choices_of(std::size_t slot) const {
    std::size_t count = 1;
    for (const auto gene : space_.slots()[slot].genes) count *= space_.genes()[gene].choices.size();
    return count;
  }

  std::vector<Direction> kinds_with_names(std::string_view addition) const {
    std::vector<Direction> kinds;
    for (std::size_t kind = 0; kind < largest_amounts().size(); ++kind)
      kinds.push_back({.name = "all " + kinds_[kind] + std::string(addition)});
    return kinds;
  }

  std::vector<double> largest_amounts() const {
    std::vector<double> most;
    for (const auto& [kind, amount] : space_.column_counts()) {
      if (most.size() <= kind) most.resize(kind + 1, 1.0);
      most[kind] = std::max(most[kind], amount);
    }
    return most;
  }

  static void append(std::vector<Direction>& set, std::vector<Direction> more, Paths paths) {
    for (auto& direction : more) {
      if (direction.amounts.empty()) continue;
      direction.paths = paths;
      set.push_back(std::move(direction));
    }
  }

  const space::Space& space_;
  std::vector<double> costs_;
  std::span<const std::string> one_hot_;
  std::span<const std::string> kinds_;
  double usual_ = 1;
};

/// Sets of directions that are looked at as wholes, from coarse to fine.
std::vector<std::vector<Direction>> direction_sets(const LinearProxy& proxy) {
  const Builder builder(proxy);
  std::vector<Paths> paths = {Paths::all};
  if (has_dead_paths(proxy.space())) paths.push_back(Paths::live);
  const auto usual = [&](std::size_t) { return builder.usual(); };
  const auto floored = [&](std::size_t column) {
    return std::max(builder.cost(column), kLeastCost * builder.usual());
  };
  std::vector<Direction> kinds;
  std::vector<Direction> kinds_and_operators;
  std::vector<Direction> places;
  std::vector<Direction> places_and_operators;
  for (const Paths which : paths) {
    for (auto* set : {&kinds, &kinds_and_operators, &places, &places_and_operators})
      builder.add_kinds(*set, which);
    for (auto* set : {&kinds_and_operators, &places, &places_and_operators})
      builder.add_priced_kinds(*set, which);
    for (auto* set : {&places, &places_and_operators}) {
      builder.add_priced_slots(*set, which);
      builder.add_kinds_by_place(*set, which);
    }
    builder.add_operators(kinds_and_operators, which, usual);
    builder.add_operators(places_and_operators, which, floored);
  }
  return {std::move(kinds), std::move(kinds_and_operators), std::move(places),
          std::move(places_and_operators)};
}

/// A row for each design and a column for each direction.
MatrixXd amounts_of(const space::Space& space, space::DesignBatch designs,
                    const std::vector<Direction>& directions) {
  // By column of "one-hot": which directions it belongs to, and by how much.
  std::array<std::vector<std::vector<std::pair<Index, double>>>, 2> parts;
  for (auto& part : parts) part.resize(operator_columns(space));
  for (std::size_t i = 0; i < directions.size(); ++i) {
    auto& part = parts[directions[i].paths == Paths::live ? 1 : 0];
    for (const auto& [column, amount] : directions[i].amounts)
      part[column].emplace_back(static_cast<Index>(i), amount);
  }
  const std::array<std::size_t, 2> encodings = {*space.find_encoding("one-hot"),
                                                *space.find_encoding("live")};
  MatrixXd amounts =
      MatrixXd::Zero(static_cast<Index>(designs.size()), static_cast<Index>(directions.size()));
  std::array<std::uint32_t, space::kMostSlots + 1> columns{};
  for (std::size_t row = 0; row < designs.size(); ++row) {
    for (std::size_t which = 0; which < 2; ++which) {
      const std::size_t count = space.taken_columns(designs[row], encodings[which], columns);
      for (std::size_t k = 0; k + 1 < count; ++k)
        for (const auto& [direction, amount] : parts[which][columns[k]])
          amounts(static_cast<Index>(row), direction) += amount;
    }
  }
  return amounts;
}

// --- adapting ---

constexpr double kNegligible = 1e-6;  // of the largest change

Status check_numbers(std::span<const double> numbers, std::size_t expected, std::string_view name) {
  if (numbers.size() != expected) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: {} numbers, expected {}", name, numbers.size(), expected));
  }
  if (!std::ranges::all_of(numbers, [](double number) { return std::isfinite(number); }))
    return fail(ErrorCode::invalid_input, fmt::format("{}: a number is not finite", name));
  return {};
}

Status check_optional(std::span<const double> numbers, std::size_t expected,
                      std::string_view name) {
  return check_numbers(numbers, numbers.empty() ? 0 : expected, name);
}

Status check_parts(const AdaptedProxy::Parts& parts) {
  const std::size_t columns = operator_columns(*parts.space);
  const std::array<double, 2> single = {parts.scale, parts.prices.constant};
  FLEETFIT_TRY(check_numbers(single, 2, "scale and constant"));
  FLEETFIT_TRY(check_optional(parts.prices.placed, columns, "placed"));
  FLEETFIT_TRY(check_optional(parts.prices.live, columns, "live"));
  if (parts.proxy_ms.empty()) return {};
  const auto designs = parts.space->size().exact();
  return check_numbers(parts.proxy_ms, static_cast<std::size_t>(designs.value_or(0)), "proxy_ms");
}

void add_scaled(std::vector<double>& sum, std::span<const double> prices, double factor) {
  if (prices.empty()) return;
  sum.resize(prices.size(), 0.0);
  for (std::size_t i = 0; i < prices.size(); ++i) sum[i] += factor * prices[i];
}

/// What coefficients of directions mean for single operators.
void add_changes(OperatorPrices& prices, const std::vector<Direction>& directions,
                 const VectorXd& coefficients, std::size_t columns) {
  for (std::size_t i = 0; i < directions.size(); ++i) {
    const double coefficient = coefficients[static_cast<Index>(i)];
    if (coefficient == 0) continue;
    auto& sum = directions[i].paths == Paths::live ? prices.live : prices.placed;
    sum.resize(columns, 0.0);
    for (const auto& [column, amount] : directions[i].amounts) sum[column] += coefficient * amount;
  }
}

OperatorChange change_of(const Direction& direction, double coefficient) {
  OperatorChange change{.name = direction.name, .live_only = direction.paths == Paths::live};
  for (const auto& [column, amount] : direction.amounts) {
    change.columns.push_back(column);
    const double change_ms = coefficient * amount;
    if (std::abs(change_ms) > std::abs(change.change_ms)) change.change_ms = change_ms;
  }
  return change;
}

std::vector<OperatorChange> changes_of(const std::vector<Direction>& directions,
                                       const VectorXd& coefficients) {
  std::vector<OperatorChange> changes;
  for (std::size_t i = 0; i < directions.size(); ++i) {
    const double coefficient = coefficients[static_cast<Index>(i)];
    if (coefficient != 0) changes.push_back(change_of(directions[i], coefficient));
  }
  std::ranges::stable_sort(changes, std::ranges::greater(),
                           [](const auto& change) { return std::abs(change.change_ms); });
  if (changes.empty()) return changes;
  const double least = kNegligible * std::abs(changes.front().change_ms);
  std::erase_if(changes, [&](const auto& change) { return std::abs(change.change_ms) < least; });
  return changes;
}

Status check_measured(const Measured& measured) {
  for (std::size_t i = 0; i < measured.latency_ms.size(); ++i) {
    if (std::isfinite(measured.latency_ms[i]) && measured.latency_ms[i] > 0) continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("measurement {} is {} ms, expected a positive number", i,
                            measured.latency_ms[i]));
  }
  return {};
}

class AdaptedSource final : public space::Source {
 public:
  explicit AdaptedSource(AdaptedProxy adapted) : adapted_(std::move(adapted)) {}

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    adapted_.predict_ms(designs, out);
    // Right up to a monotone distortion, and so also a little below 0.
    const auto wrong =
        std::ranges::find_if_not(out, [](double ms) { return std::abs(ms) <= core::kDayMs; });
    if (wrong == out.end()) return {};
    const auto design = designs[static_cast<std::size_t>(wrong - out.begin())];
    const auto& report = adapted_.report();
    return fail(
        ErrorCode::invalid_input,
        fmt::format("design {}: the proxy {} as adapted to {} gives it {:g} ms, which is no "
                    "time",
                    adapted_.space().format(design), report.proxy, report.target, *wrong));
  }

 private:
  AdaptedProxy adapted_;
};

}  // namespace

AdaptedProxy::AdaptedProxy(Parts parts)
    : parts_(std::move(parts)), pricer_(*parts_.space, parts_.prices) {
  all_designs_ = all_designs(*parts_.space);
  if (!all_designs_) return;
  all_ms_.resize(all_designs_->size());
  pricer_.price(all_designs_->designs(), all_ms_);
  for (std::size_t i = 0; i < parts_.proxy_ms.size(); ++i)
    all_ms_[i] += parts_.scale * parts_.proxy_ms[i];
}

Result<AdaptedProxy> AdaptedProxy::make(Parts parts) {
  FLEETFIT_TRY(check_parts(parts));
  return AdaptedProxy(std::move(parts));
}

void AdaptedProxy::predict_ms(space::DesignBatch designs, std::span<double> out) const {
  if (!all_designs_) return pricer_.price(designs, out);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = all_ms_[*all_designs_->find(designs[i])];
}

Result<AdaptedProxy> adapt(const LinearProxy& proxy, const Measured& measured,
                           const AdaptOptions& options) {
  FLEETFIT_TRY(check_measured(measured));
  const auto& space = proxy.space();
  const auto count = static_cast<Index>(measured.designs.size());
  VectorXd said(count);
  proxy.price(measured.designs, {said.data(), measured.designs.size()});
  const VectorXd target = Eigen::Map<const VectorXd>(measured.latency_ms.data(), count);
  const auto sets = direction_sets(proxy);
  std::vector<Eigen::MatrixXd> bases;
  for (const auto& set : sets) bases.push_back(amounts_of(space, measured.designs, set));
  FLEETFIT_ASSIGN(const auto correction,
                  fit_correction({.proxy = said, .target = target, .bases = bases},
                                 {.held_out = options.validation, .lambdas = options.lambdas}));

  AdaptedProxy::Parts parts{.space = &space, .scale = correction.alpha};
  parts.prices.constant = correction.constant;
  const auto known = proxy.all_latencies_ms();
  parts.proxy_ms.assign(known.begin(), known.end());
  if (known.empty()) {
    const auto& prices = proxy.model().prices;
    parts.prices.constant += correction.alpha * prices.constant;
    add_scaled(parts.prices.placed, prices.placed, correction.alpha);
    add_scaled(parts.prices.live, prices.live, correction.alpha);
  }
  const auto& directions = sets[correction.basis];
  add_changes(parts.prices, directions, correction.coefficients, operator_columns(space));
  parts.report = {.proxy = proxy.name(),
                  .measurements = measured.designs.size(),
                  .lambda = correction.lambda,
                  .held_out_srcc = correction.held_out_srcc,
                  .proxy_srcc = correction.proxy_srcc,
                  .keeps_proxy = correction.keeps_proxy,
                  .changes = changes_of(directions, correction.coefficients)};
  return AdaptedProxy::make(std::move(parts));
}

std::unique_ptr<const space::Source> adapted_source(AdaptedProxy adapted) {
  return std::make_unique<AdaptedSource>(std::move(adapted));
}

}  // namespace fleetfit::transfer
