#include "fleetfit/transfer/linear_proxy.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::transfer {
namespace {

constexpr std::uint64_t kMostDesigns = 1U << 17U;

/// Whether every gene means something in every design.
bool is_always_active(const space::Space& space) {
  space::DesignCount combinations = 1;
  for (const auto& gene : space.genes()) combinations *= gene.choices.size();
  return combinations == space.size();
}

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t kLeastDesigns = 10;
constexpr std::size_t kHeldOut = 5;  // one design of so many
constexpr double kRidge = 1;         // as if each operator had been seen once more, for nothing
constexpr int kMostSweeps = 2000;
constexpr double kSettled = 1e-10;
constexpr int kLookedAt = 200;  // random designs

/// For each design the columns that are 1: those of "one-hot", those of "live" behind them, and the
/// constant at the end of all.
class Rows {
 public:
  Rows(const space::Space& space, space::DesignBatch designs)
      : operators_(operator_columns(space)), live_(has_dead_paths(space)) {
    starts_.push_back(0);
    std::array<std::uint32_t, space::kMostSlots + 1> columns{};
    const std::size_t one_hot = *space.find_encoding("one-hot");
    const std::size_t live = *space.find_encoding("live");
    for (std::size_t i = 0; i < designs.size(); ++i) {
      add(std::span(columns).first(space.taken_columns(designs[i], one_hot, columns) - 1), 0);
      if (live_) {
        add(std::span(columns).first(space.taken_columns(designs[i], live, columns) - 1),
            operators_);
      }
      taken_.push_back(static_cast<Index>(this->columns()) - 1);
      starts_.push_back(taken_.size());
    }
  }

  std::size_t operators() const { return operators_; }
  bool has_live() const { return live_; }
  std::size_t columns() const { return operators_ * (live_ ? 2 : 1) + 1; }
  std::size_t size() const { return starts_.size() - 1; }
  std::span<const Index> row(std::size_t i) const {
    return std::span(taken_).subspan(starts_[i], starts_[i + 1] - starts_[i]);
  }

 private:
  void add(std::span<const std::uint32_t> columns, std::size_t offset) {
    for (const auto column : columns) taken_.push_back(static_cast<Index>(column + offset));
  }

  std::size_t operators_;
  bool live_;
  std::vector<std::size_t> starts_;
  std::vector<Index> taken_;
};

/// Least squares in its normal form.
struct Equations {
  MatrixXd products;
  VectorXd right;

  explicit Equations(std::size_t columns)
      : products(MatrixXd::Zero(static_cast<Index>(columns), static_cast<Index>(columns))),
        right(VectorXd::Zero(static_cast<Index>(columns))) {}

  void add(std::span<const Index> row, double value) {
    for (const Index a : row) {
      right[a] += value;
      for (const Index b : row) products(a, b) += 1;
    }
  }
};

enum class Sign : std::uint8_t { any, not_negative };

struct Candidate {
  std::string_view encoding;
  std::vector<Index> columns;
  Sign sign = Sign::any;
};

std::vector<Index> column_range(std::size_t first, std::size_t count, std::size_t constant) {
  std::vector<Index> columns;
  for (std::size_t i = first; i < first + count; ++i) columns.push_back(static_cast<Index>(i));
  columns.push_back(static_cast<Index>(constant));
  return columns;
}

std::vector<Candidate> candidates_of(const Rows& rows) {
  const std::size_t constant = rows.columns() - 1;
  std::vector<Candidate> candidates;
  for (const auto sign : {Sign::not_negative, Sign::any}) {
    candidates.push_back({"one-hot", column_range(0, rows.operators(), constant), sign});
    if (!rows.has_live()) continue;
    candidates.push_back(
        {"live", column_range(rows.operators(), rows.operators(), constant), sign});
    candidates.push_back({"both", column_range(0, 2 * rows.operators(), constant), sign});
  }
  return candidates;
}

/// By coordinate descent; the constant at the end may be negative.
VectorXd solve_not_negative(const MatrixXd& products, const VectorXd& right) {
  VectorXd x = VectorXd::Zero(right.size());
  VectorXd rest = right;  // right - products x
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double moved = 0;
    for (Index i = 0; i < x.size(); ++i) {
      double next = x[i] + rest[i] / products(i, i);
      if (i + 1 < x.size()) next = std::max(next, 0.0);
      const double step = next - x[i];
      if (step == 0) continue;
      rest -= step * products.col(i);
      x[i] = next;
      moved = std::max(moved, std::abs(step));
    }
    if (moved <= kSettled * x.cwiseAbs().maxCoeff()) break;
  }
  return x;
}

/// Prices of all columns; 0 for those that the candidate leaves out.
VectorXd solve(const Equations& equations, const Candidate& candidate) {
  MatrixXd products = equations.products(candidate.columns, candidate.columns);
  products.diagonal().head(products.rows() - 1).array() += kRidge;
  const VectorXd right = equations.right(candidate.columns);
  VectorXd prices = VectorXd::Zero(equations.right.size());
  prices(candidate.columns) = candidate.sign == Sign::any ? VectorXd(products.ldlt().solve(right))
                                                          : solve_not_negative(products, right);
  return prices;
}

double total(const VectorXd& prices, std::span<const Index> row) {
  double sum = 0;
  for (const Index column : row) sum += prices[column];
  return sum;
}

bool is_held_out(std::size_t i) { return i % kHeldOut == kHeldOut - 1; }

struct Tested {
  double error = 0;
  std::vector<double> said;
  std::vector<double> measured;
};

Tested test(const VectorXd& prices, const Rows& rows, std::span<const double> latency_ms) {
  Tested tested;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!is_held_out(i)) continue;
    tested.said.push_back(total(prices, rows.row(i)));
    tested.measured.push_back(latency_ms[i]);
    tested.error += std::pow(tested.said.back() - latency_ms[i], 2);
  }
  return tested;
}

OperatorPrices prices_from(const VectorXd& prices, const Rows& rows, std::string_view encoding) {
  OperatorPrices result{.constant = prices[prices.size() - 1]};
  const auto* first = prices.data();
  const auto count = static_cast<std::ptrdiff_t>(rows.operators());
  if (encoding != "live") result.placed.assign(first, first + count);
  if (encoding != "one-hot") result.live.assign(first + count, first + 2 * count);
  return result;
}

Status check(std::span<const double> latency_ms) {
  if (latency_ms.size() < kLeastDesigns) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} measured designs are too few, expected at "
                            "least {}",
                            latency_ms.size(), kLeastDesigns));
  }
  const auto [low, high] = std::ranges::minmax(latency_ms);
  if (low == high) {
    return fail(ErrorCode::invalid_input,
                "all latencies are equal, so designs have no order on it");
  }
  return {};
}

/// Slots that hold something in every design, as far as random ones tell.
space::SlotSet always_active_slots(const space::Space& space) {
  core::Random random(1);
  std::vector<space::Choice> design(space.genes().size());
  space::SlotSet always = space::SlotSet().set();
  for (int i = 0; i < kLookedAt; ++i) {
    space.sample(random, design);
    always &= space.active_slots(design);
  }
  return always;
}

/// Prices above the cheapest operator of each slot, or above 0 where nothing may be in a slot.
std::vector<double> costs_above_least(const space::Space& space, const OperatorPrices& prices) {
  const auto& source = prices.placed.empty() ? prices.live : prices.placed;
  std::vector<double> costs = source;
  if (!prices.placed.empty() && !prices.live.empty()) {
    for (std::size_t i = 0; i < costs.size(); ++i) costs[i] += prices.live[i];
  }
  const auto always = always_active_slots(space);
  std::size_t first = 0;
  for (std::size_t slot = 0; slot < space.slots().size(); ++slot) {
    std::size_t count = 1;
    for (const auto gene : space.slots()[slot].genes) count *= space.genes()[gene].choices.size();
    const auto part = std::span(costs).subspan(first, count);
    const double least = always[slot] ? std::ranges::min(part) : 0.0;
    for (auto& cost : part) cost = std::max(0.0, cost - least);
    first += count;
  }
  return costs;
}

}  // namespace

Result<LinearFit> fit_operator_prices(const space::Space& space, space::DesignBatch designs,
                                      std::span<const double> latency_ms) {
  FLEETFIT_TRY(check(latency_ms));
  const Rows rows(space, designs);
  Equations seen(rows.columns());
  Equations all(rows.columns());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    all.add(rows.row(i), latency_ms[i]);
    if (!is_held_out(i)) seen.add(rows.row(i), latency_ms[i]);
  }
  const Candidate* best = nullptr;
  Tested best_test{.error = std::numeric_limits<double>::infinity()};
  const auto candidates = candidates_of(rows);
  for (const auto& candidate : candidates) {
    auto tested = test(solve(seen, candidate), rows, latency_ms);
    if (!(tested.error < best_test.error)) continue;
    best = &candidate;
    best_test = std::move(tested);
  }
  if (best == nullptr) return fail(ErrorCode::invalid_input, "a latency is not finite");
  return LinearFit{
      .prices = prices_from(solve(all, *best), rows, best->encoding),
      .encoding = std::string(best->encoding),
      .held_out_srcc = core::spearman(best_test.said, best_test.measured).value_or(0.0)};
}

LinearProxy::LinearProxy(std::string name, const space::Space& space, LinearFit fit,
                         std::vector<double> latency_ms)
    : name_(std::move(name)),
      space_(&space),
      fit_(std::move(fit)),
      operator_costs_(costs_above_least(space, fit_.prices)),
      pricer_(space, fit_.prices),
      all_ms_(std::move(latency_ms)) {
  if (!all_ms_.empty()) all_designs_ = all_designs(space);
}

Result<LinearProxy> LinearProxy::fit(const space::DesignTable& table, std::size_t column) {
  const auto& values = table.values[column];
  space::Population designs(table.designs.genes());
  std::vector<double> latency_ms;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    designs.add(table.designs[i]);
    latency_ms.push_back(values[i]);
  }
  auto fit = fit_operator_prices(*table.space, designs, latency_ms);
  if (!fit)
    return core::within(fmt::format("{}: '{}'", table.name, table.columns[column]), fit.error());
  std::vector<double> all_ms;
  if (const auto all = all_designs(*table.space); all && all->size() == latency_ms.size()) {
    all_ms.resize(all->size());
    for (std::size_t i = 0; i < latency_ms.size(); ++i)
      all_ms[*all->find(designs.batch()[i])] = latency_ms[i];
  }
  return LinearProxy(table.columns[column], *table.space, *std::move(fit), std::move(all_ms));
}

void LinearProxy::price(space::DesignBatch designs, std::span<double> out) const {
  if (!all_designs_) return pricer_.price(designs, out);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = all_ms_[*all_designs_->find(designs[i])];
}

std::size_t operator_columns(const space::Space& space) { return space.column_counts().size(); }

bool has_dead_paths(const space::Space& space) {
  std::size_t kinds = 0;
  for (const auto& count : space.column_counts())
    kinds = std::max<std::size_t>(kinds, count.kind + 1);
  return space.encodings()[*space.find_encoding("counts")].features.size() > kinds;
}

std::optional<space::DesignIndex> all_designs(const space::Space& space) {
  const auto count = space.size().exact();
  if (!count || *count > kMostDesigns) return std::nullopt;
  space::DesignIndex index(space);
  std::vector<space::Choice> design(space.genes().size());
  do index.add(design);
  while (space.next(design));
  return index;
}

OperatorPricer::OperatorPricer(const space::Space& space, OperatorPrices prices)
    : space_(&space), prices_(std::move(prices)) {
  if (!is_always_active(space)) return;
  std::size_t first = 0;
  for (const auto& slot : space.slots()) {
    FixedSlot fixed{.first_column = first, .genes = {}};
    std::size_t choices = 1;
    for (const auto gene : slot.genes) {
      fixed.genes.emplace_back(gene, space.genes()[gene].choices.size());
      choices *= space.genes()[gene].choices.size();
    }
    fixed_.push_back(std::move(fixed));
    first += choices;
  }
}

void OperatorPricer::price(space::DesignBatch designs, std::span<double> out) const {
  assert(out.size() == designs.size());
  std::ranges::fill(out, prices_.constant);
  if (!prices_.placed.empty() && !fixed_.empty()) {
    price_fixed(designs, out);
  } else {
    add_taken(designs, "one-hot", prices_.placed, out);
  }
  add_taken(designs, "live", prices_.live, out);
}

void OperatorPricer::price_fixed(space::DesignBatch designs, std::span<double> out) const {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const space::Design design = designs[i];
    double sum = 0;
    for (const auto& slot : fixed_) {
      std::size_t joint = 0;
      for (const auto& [gene, choices] : slot.genes) joint = joint * choices + design[gene];
      sum += prices_.placed[slot.first_column + joint];
    }
    out[i] += sum;
  }
}

void OperatorPricer::add_taken(space::DesignBatch designs, std::string_view encoding,
                               std::span<const double> prices, std::span<double> out) const {
  if (prices.empty()) return;
  const std::size_t number = *space_->find_encoding(encoding);
  std::array<std::uint32_t, space::kMostSlots + 1> columns{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t count = space_->taken_columns(designs[i], number, columns);
    // The last one is the constant.
    for (std::size_t k = 0; k + 1 < count; ++k) out[i] += prices[columns[k]];
  }
}

}  // namespace fleetfit::transfer
