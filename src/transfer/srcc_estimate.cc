#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fleetfit/core/random.h"
#include "fleetfit/transfer/monotonicity.h"

namespace fleetfit::transfer {
namespace {

constexpr double kNormal95 = 1.959964;
constexpr std::size_t kLeastForInterval = 4;
constexpr std::size_t kMostToDecide = 100'000;
constexpr double kConfidence = 0.95;
constexpr std::size_t kFirstSamples = 5;
constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

/// atanh is infinite at 1, where an estimate from few samples often lies.
double fisher(double srcc) { return std::atanh(std::clamp(srcc, -1 + 1e-9, 1 - 1e-9)); }

double deviation(double srcc, std::size_t samples) {
  return std::sqrt((1 + srcc * srcc / 2) / (static_cast<double>(samples) - 3));
}

Status check(std::span<const double> a, std::span<const double> b, const SpreadOptions& options) {
  if (a.size() != b.size())
    return fail(ErrorCode::invalid_input, "the two columns have different numbers of designs");
  if (options.samples < 2 || options.samples > a.size()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} samples were asked for, expected 2 to {}, as many as designs are "
                            "measured on both devices",
                            options.samples, a.size()));
  }
  if (options.trials < 1) return fail(ErrorCode::invalid_input, "no trials were asked for");
  return {};
}

double trial(std::span<const double> a, std::span<const double> b, std::size_t samples,
             core::Random random) {
  std::vector<double> x;
  std::vector<double> y;
  for (const auto row : random.sample(a.size(), samples)) {
    x.push_back(a[row]);
    y.push_back(b[row]);
  }
  return core::spearman(x, y).value_or(kUndefined);
}

/// Correlations of all trials that have one.
Result<std::vector<double>> trials(std::span<const double> a, std::span<const double> b,
                                   const SpreadOptions& options, core::ThreadPool& pool) {
  FLEETFIT_TRY(check(a, b, options));
  std::vector<double> values(options.trials);
  const core::Random random(options.seed);
  pool.parallel_for(values.size(), [&](std::size_t i) {
    values[i] = trial(a, b, options.samples, random.split(i));
  });
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (!values.empty()) return values;
  return fail(ErrorCode::invalid_input,
              "all sampled latencies of a device are equal, so designs have no order on it");
}

bool is_enough(const std::vector<double>& values, std::size_t trials, bool holds,
               double threshold) {
  const auto right =
      std::ranges::count_if(values, [&](double value) { return (value >= threshold) == holds; });
  return static_cast<double>(right) >= kConfidence * static_cast<double>(trials);
}

}  // namespace

core::Interval srcc_interval(double srcc, std::size_t samples) {
  const double z = fisher(srcc);
  const double reach = kNormal95 * deviation(srcc, std::max(samples, kLeastForInterval));
  return {.low = std::tanh(z - reach), .high = std::tanh(z + reach)};
}

Result<SrccEstimate> estimate_srcc(std::span<const double> a, std::span<const double> b) {
  if (a.size() < kLeastForInterval) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("{} samples are too few, expected at least {}", a.size(), kLeastForInterval));
  }
  FLEETFIT_ASSIGN(const auto srcc, core::spearman(a, b));
  return SrccEstimate{.srcc = srcc, .ci95 = srcc_interval(srcc, a.size()), .samples = a.size()};
}

Verdict compare(const SrccEstimate& estimate, double threshold) {
  if (estimate.ci95.low >= threshold) return Verdict::holds;
  return estimate.ci95.high < threshold ? Verdict::fails : Verdict::undecided;
}

std::optional<std::size_t> samples_to_decide(double srcc, double threshold) {
  const double distance = std::abs(fisher(srcc) - fisher(threshold));
  if (distance == 0) return std::nullopt;
  const double needed = 3 + std::pow(kNormal95 / distance, 2) * (1 + srcc * srcc / 2);
  if (needed > static_cast<double>(kMostToDecide)) return std::nullopt;
  return std::max(kLeastForInterval, static_cast<std::size_t>(std::ceil(needed)));
}

Result<SrccSpread> srcc_spread(std::span<const double> a, std::span<const double> b,
                               const SpreadOptions& options, core::ThreadPool& pool) {
  FLEETFIT_ASSIGN(const auto values, trials(a, b, options, pool));
  return SrccSpread{.mean = *core::mean(values),
                    .stddev = core::stddev(values).value_or(0.0),
                    .ci95 = {.low = *core::quantile(values, (1 - kConfidence) / 2),
                             .high = *core::quantile(values, (1 + kConfidence) / 2)},
                    .undefined = options.trials - values.size()};
}

Result<std::optional<std::size_t>> enough_samples(std::span<const double> a,
                                                  std::span<const double> b, double threshold,
                                                  const SpreadOptions& options,
                                                  core::ThreadPool& pool) {
  FLEETFIT_ASSIGN(const auto truth, core::spearman(a, b));
  auto tried = options;
  for (tried.samples = kFirstSamples; tried.samples <= a.size();
       tried.samples += std::max<std::size_t>(1, tried.samples / 4)) {
    FLEETFIT_ASSIGN(const auto values, trials(a, b, tried, pool));
    if (is_enough(values, options.trials, truth >= threshold, threshold)) return tried.samples;
  }
  return std::nullopt;
}

}  // namespace fleetfit::transfer
