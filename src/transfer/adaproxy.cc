#include "fleetfit/transfer/adaproxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "transfer/correction.h"
#include "transfer/directions.h"

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

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
    return {};
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
