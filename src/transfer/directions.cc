#include "transfer/directions.h"

#include <algorithm>
#include <array>

#include "fleetfit/core/statistics.h"

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;

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

}  // namespace

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

}  // namespace fleetfit::transfer
