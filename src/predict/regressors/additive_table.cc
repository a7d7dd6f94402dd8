#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fleetfit/predict/network_predictor.h"

namespace fleetfit::predict {
namespace {

constexpr std::size_t kLanes = 4;  // sums that a core can overlap
constexpr int kFolds = 5;

}  // namespace

Result<AdditiveTable> AdditiveTable::build(double base_ms,
                                           const std::vector<std::vector<double>>& ms) {
  if (!std::isfinite(base_ms)) return fail(ErrorCode::invalid_input, "the base is not finite");
  AdditiveTable table;
  table.base_ms_ = base_ms;
  for (std::size_t gene = 0; gene < ms.size(); ++gene) {
    if (ms[gene].empty())
      return fail(ErrorCode::invalid_input, fmt::format("gene {} has no choices", gene));
    if (!std::ranges::all_of(ms[gene], [](double v) { return std::isfinite(v); }))
      return fail(ErrorCode::invalid_input, fmt::format("gene {}: a cost is not finite", gene));
    table.first_.push_back(static_cast<std::uint32_t>(table.ms_.size()));
    table.choices_.push_back(static_cast<std::uint32_t>(ms[gene].size()));
    table.ms_.insert(table.ms_.end(), ms[gene].begin(), ms[gene].end());
  }
  return table;
}

template <class Choice>
void AdditiveTable::add_up(std::span<const Choice> designs, std::span<double> out) const {
  const std::size_t genes = choices_.size();
  const auto cost = [&](std::size_t design, std::size_t gene) {
    const std::uint32_t choice = designs[design * genes + gene];
    return ms_[first_[gene] + std::min(choice, choices_[gene] - 1)];
  };
  std::size_t i = 0;
  for (; i + kLanes <= out.size(); i += kLanes) {
    std::array<double, kLanes> sums;
    sums.fill(base_ms_);
    for (std::size_t gene = 0; gene < genes; ++gene)
      for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += cost(i + lane, gene);
    std::ranges::copy(sums, out.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (; i < out.size(); ++i) {
    out[i] = base_ms_;
    for (std::size_t gene = 0; gene < genes; ++gene) out[i] += cost(i, gene);
  }
}

void AdditiveTable::price(std::span<const std::uint16_t> designs, std::span<double> out) const {
  add_up(designs, out);
}

void AdditiveTable::price(std::span<const std::uint8_t> designs, std::span<double> out) const {
  add_up(designs, out);
}

Result<AdditiveTable> fit_additive(std::span<const std::uint16_t> designs,
                                   std::span<const std::uint32_t> choices,
                                   std::span<const double> latency_ms, std::uint64_t seed) {
  std::vector<std::size_t> first;
  std::size_t columns = 0;
  for (const auto count : choices) {
    first.push_back(columns);
    columns += count;
  }
  if (designs.size() != latency_ms.size() * choices.size()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} choices are not {} designs of {} genes", designs.size(),
                            latency_ms.size(), choices.size()));
  }
  std::vector<double> x(latency_ms.size() * columns, 0.0);
  for (std::size_t i = 0; i < latency_ms.size(); ++i) {
    for (std::size_t gene = 0; gene < choices.size(); ++gene) {
      const std::size_t choice = designs[i * choices.size() + gene];
      if (choice >= choices[gene]) {
        return fail(ErrorCode::invalid_input,
                    fmt::format("design {}: gene {} has no choice {}", i, gene, choice));
      }
      x[i * columns + first[gene] + choice] = 1;
    }
  }
  const auto fold = deal_folds(latency_ms.size(), kFolds, core::Random(seed));
  FLEETFIT_ASSIGN(const auto fitted, fit_ridge({.x = {.values = x, .columns = columns},
                                                .y = latency_ms,
                                                .fold = fold,
                                                .folds = kFolds}));
  const auto& linear = dynamic_cast<const LinearModel&>(*fitted.model);
  std::vector<std::vector<double>> ms;
  for (std::size_t gene = 0; gene < choices.size(); ++gene) {
    const auto weights = linear.weights().subspan(first[gene], choices[gene]);
    ms.emplace_back(weights.begin(), weights.end());
  }
  return AdditiveTable::build(linear.intercept(), ms);
}

}  // namespace fleetfit::predict
