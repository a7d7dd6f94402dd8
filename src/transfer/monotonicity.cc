#include "fleetfit/transfer/monotonicity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fleetfit/core/random.h"

namespace fleetfit::transfer {
namespace {

/// A device's measured designs in the order of their latency.
struct OrderedColumn {
  const std::string* name = nullptr;
  std::span<const double> values = {};
  std::vector<std::uint32_t> order = {};  ///< without those that were not measured
  std::vector<double> unit_ranks = {};    ///< of a column that lacks nothing, else empty

  bool is_complete() const { return order.size() == values.size(); }
};

std::vector<std::uint32_t> order_of(std::span<const double> values) {
  std::vector<std::uint32_t> order;
  order.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isnan(values[i])) order.push_back(static_cast<std::uint32_t>(i));
  std::ranges::sort(order, {}, [&](std::uint32_t row) { return values[row]; });
  return order;
}

/// Ranks of the rows that both columns have, brought to mean 0 and length 1, so that the product of
/// two such columns is their correlation; 0 in all other rows. Empty if all values are equal.
std::vector<double> unit_ranks(const OrderedColumn& column, const OrderedColumn& other) {
  std::vector<std::uint32_t> order;
  order.reserve(column.order.size());
  for (const auto row : column.order)
    if (other.is_complete() || !std::isnan(other.values[row])) order.push_back(row);
  std::vector<double> ranks(column.values.size(), 0.0);
  const double middle = (static_cast<double>(order.size()) - 1) / 2;
  double squares = 0;
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && column.values[order[last + 1]] == column.values[order[first]])
      ++last;
    const double rank = static_cast<double>(first + last) / 2 - middle;
    squares += static_cast<double>(last - first + 1) * rank * rank;
    for (; first <= last; ++first) ranks[order[first]] = rank;
  }
  if (squares == 0) return {};
  const double factor = 1 / std::sqrt(squares);
  for (double& rank : ranks) rank *= factor;
  return ranks;
}

std::size_t common_designs(const OrderedColumn& a, const OrderedColumn& b) {
  if (a.is_complete()) return b.order.size();
  if (b.is_complete()) return a.order.size();
  return static_cast<std::size_t>(
      std::ranges::count_if(a.order, [&](auto row) { return !std::isnan(b.values[row]); }));
}

double product(std::span<const double> a, std::span<const double> b) {
  const double sum = std::transform_reduce(a.begin(), a.end(), b.begin(), 0.0);
  return std::clamp(sum, -1.0, 1.0);
}

Result<double> correlate(const OrderedColumn& a, const OrderedColumn& b, std::size_t designs) {
  if (designs < 2) {
    return fail(ErrorCode::invalid_input,
                fmt::format("devices '{}' and '{}' have {} measured designs in common, expected at "
                            "least 2",
                            *a.name, *b.name, designs));
  }
  if (a.is_complete() && b.is_complete()) return product(a.unit_ranks, b.unit_ranks);
  const auto first = unit_ranks(a, b);
  const auto second = unit_ranks(b, a);
  if (first.empty() || second.empty()) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("device '{}': all latencies are equal on the designs that '{}' has, too",
                    first.empty() ? *a.name : *b.name, first.empty() ? *b.name : *a.name));
  }
  return product(first, second);
}

Result<OrderedColumn> ordered(const std::string& name, std::span<const double> values) {
  OrderedColumn column{.name = &name, .values = values, .order = order_of(values)};
  if (column.order.size() < 2) {
    return fail(ErrorCode::invalid_input,
                fmt::format("device '{}' has {} measured designs, expected at least 2", name,
                            column.order.size()));
  }
  auto ranks = unit_ranks(column, column);
  if (ranks.empty()) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("device '{}': all latencies are equal, so designs have no order on it", name));
  }
  if (column.is_complete()) column.unit_ranks = std::move(ranks);
  return column;
}

Result<std::vector<OrderedColumn>> order_columns(const DeviceColumns& columns) {
  std::vector<OrderedColumn> result;
  for (std::size_t i = 0; i < columns.names.size(); ++i) {
    FLEETFIT_ASSIGN(auto column, ordered(columns.names[i], columns.values[i]));
    result.push_back(std::move(column));
  }
  return result;
}

}  // namespace

Result<CorrelationMatrix> correlation_matrix(const DeviceColumns& columns) {
  FLEETFIT_ASSIGN(const auto ordered_columns, order_columns(columns));
  const std::size_t devices = ordered_columns.size();
  CorrelationMatrix matrix{
      .devices = {columns.names.begin(), columns.names.end()},
      .srcc = std::vector(devices, std::vector(devices, 1.0)),
      .designs = std::vector(devices, std::vector<std::size_t>(devices, 0)),
  };
  for (std::size_t i = 0; i < devices; ++i) {
    const auto& a = ordered_columns[i];
    matrix.designs[i][i] = a.order.size();
    for (std::size_t j = 0; j < i; ++j) {
      const auto& b = ordered_columns[j];
      const std::size_t common = common_designs(a, b);
      FLEETFIT_ASSIGN(const auto srcc, correlate(a, b, common));
      matrix.srcc[i][j] = matrix.srcc[j][i] = srcc;
      matrix.designs[i][j] = matrix.designs[j][i] = common;
    }
  }
  return matrix;
}

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
