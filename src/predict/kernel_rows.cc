#include "predict/kernel_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "fleetfit/core/statistics.h"
#include "fleetfit/predict/linear_model.h"
#include "predict/uncertainty.h"

namespace fleetfit::predict {
namespace {

// A profile that is farther off than this says nothing about the network's latency.
constexpr double kMostScale = 2;
// Fewer networks than this tell no law of short ones.
constexpr std::size_t kLeastNetworksForShare = 20;
// A law with one unknown more has to leave so much less of the squared errors.
constexpr double kShareWorthIt = 0.94;

double kernels_ms(const NetworkSample& network) {
  double sum = 0;
  for (const auto& kernel : network.kernels) sum += kernel.ms;
  return sum;
}

/// A network as far as its overhead is concerned, scaled so that all adds up to its latency.
struct Around {
  double overhead_ms;
  double kernels_ms;
  double latency_ms;
  std::size_t kernels;
};

Around around_kernels(const NetworkSample& network) {
  const double kernels = kernels_ms(network);
  const double scale =
      std::clamp(network.latency_ms / (kernels + network.overhead_ms), 1 / kMostScale, kMostScale);
  return {.overhead_ms = network.overhead_ms * scale,
          .kernels_ms = kernels * scale,
          .latency_ms = network.latency_ms,
          .kernels = network.kernels.size()};
}

// The overhead of a network that was disturbed between its kernels says nothing: one whose share of
// the latency is far above the others' is left out.
void leave_out_disturbed(std::vector<Around>& networks) {
  std::vector<double> shares;
  for (const auto& network : networks) shares.push_back(network.overhead_ms / network.latency_ms);
  const double middle = *core::median(shares);
  const double most = middle + std::max(5 * *core::mad(shares), middle);
  std::erase_if(networks, [&](const Around& network) {
    return network.overhead_ms > most * network.latency_ms;
  });
}

/// Non-negative least squares with two unknowns, each network weighted by its latency.
Overhead fit_full_from(double full_from_ms, std::span<const Around> networks) {
  double s00 = 0;
  double s01 = 0;
  double s11 = 0;
  double t0 = 0;
  double t1 = 0;
  for (const auto& network : networks) {
    const Overhead one{.network_ms = 1 / network.latency_ms, .full_from_ms = full_from_ms};
    const double x0 = one.of(network.kernels, network.kernels_ms);
    const double x1 = x0 * static_cast<double>(network.kernels);
    const double y = network.overhead_ms / network.latency_ms;
    s00 += x0 * x0;
    s01 += x0 * x1;
    s11 += x1 * x1;
    t0 += x0 * y;
    t1 += x1 * y;
  }
  Overhead overhead{.network_ms = t0 / s00, .full_from_ms = full_from_ms};
  const double determinant = s00 * s11 - s01 * s01;
  if (!(determinant > 1e-9 * s00 * s11)) return overhead;
  const double network_ms = (t0 * s11 - t1 * s01) / determinant;
  const double kernel_ms = (t1 * s00 - t0 * s01) / determinant;
  if (kernel_ms < 0) return overhead;
  overhead.network_ms = std::max(network_ms, 0.0);
  overhead.kernel_ms = network_ms < 0 ? t1 / s11 : kernel_ms;
  return overhead;
}

double squared_errors(const Overhead& overhead, std::span<const Around> networks) {
  double sum = 0;
  for (const auto& network : networks) {
    const double fitted = overhead.of(network.kernels, network.kernels_ms);
    const double error = (network.overhead_ms - fitted) / network.latency_ms;
    sum += error * error;
  }
  return sum;
}

constexpr std::size_t kFewValues = 8;
constexpr std::size_t kLeastRowsOfPart = 16;
constexpr int kLeastNetworksOfPart = 5;
constexpr std::size_t kMostConditions = 2;
// Two lines have to be better than one by this factor, and by a percent of the price.
constexpr double kMuchBetter = 0.8;
constexpr double kPercent = 1;
// Enough to compare splits; the models that are kept look for the best penalty themselves.
constexpr LassoOptions kQuick{.lowest_alpha = 1e-3, .highest_alpha = 1e-2, .alphas = 2};

std::optional<double> error_sum(const KernelRows& rows, int folds) {
  const auto fitted = fit_lasso(rows.set(folds), kQuick);
  if (!fitted) return std::nullopt;
  return mape_percent(fitted->out_of_fold, rows.y) * static_cast<double>(rows.y.size());
}

// Between neighbouring values if there are few, else between zero and all others.
std::vector<double> thresholds(const KernelRows& rows, std::size_t feature) {
  std::set<double> values;
  for (std::size_t i = 0; i < rows.y.size(); ++i) values.insert(rows.rows().row(i)[feature]);
  std::vector<double> between;
  for (auto at = values.begin(); at != values.end() && std::next(at) != values.end(); ++at)
    if (values.size() <= kFewValues || *at == 0) between.push_back((*at + *std::next(at)) / 2);
  return between;
}

KernelRows part_of(const KernelRows& rows, const Condition& condition) {
  KernelRows part{.kind = rows.kind, .when = rows.when, .columns = rows.columns};
  part.when.push_back(condition);
  for (std::size_t i = 0; i < rows.y.size(); ++i)
    if (condition.holds(rows.rows().row(i))) part.add(rows, i);
  return part;
}

struct Split {
  KernelRows below;
  KernelRows above;
  double error = 0;
};

bool is_enough(const KernelRows& rows) {
  return rows.y.size() >= kLeastRowsOfPart && rows.networks() >= kLeastNetworksOfPart;
}

std::optional<Split> try_split(const KernelRows& rows, std::size_t feature, double threshold,
                               int folds) {
  Split split{.below = part_of(rows, {feature, threshold, false}),
              .above = part_of(rows, {feature, threshold, true})};
  if (!is_enough(split.below) || !is_enough(split.above)) return std::nullopt;
  const auto below = error_sum(split.below, folds);
  const auto above = error_sum(split.above, folds);
  if (!below || !above) return std::nullopt;
  split.error = *below + *above;
  return split;
}

std::optional<Split> best_split(const KernelRows& rows, int folds) {
  std::optional<Split> best;
  std::set<std::vector<int>> tried;  // many features part the rows in the same way
  for (std::size_t feature = 0; feature < rows.columns; ++feature) {
    for (const double threshold : thresholds(rows, feature)) {
      std::vector<int> below;
      for (std::size_t i = 0; i < rows.y.size(); ++i)
        if (rows.rows().row(i)[feature] < threshold) below.push_back(static_cast<int>(i));
      if (!tried.insert(std::move(below)).second) continue;
      auto split = try_split(rows, feature, threshold, folds);
      if (split && (!best || split->error < best->error)) best = std::move(split);
    }
  }
  return best;
}

}  // namespace

void KernelRows::add(std::span<const double> row, double ms, int of_network, int in_fold) {
  columns = row.size();
  x.insert(x.end(), row.begin(), row.end());
  y.push_back(ms);
  network.push_back(of_network);
  fold.push_back(in_fold);
}

KernelRows KernelRows::generic() const {
  KernelRows result{.kind = kind};
  for (std::size_t i = 0; i < y.size(); ++i) {
    result.add(rows().row(i).first(cost::generic_feature_names().size()), y[i], network[i],
               fold[i]);
  }
  return result;
}

int KernelRows::networks() const {
  return static_cast<int>(std::set<int>(network.begin(), network.end()).size());
}

Profiles gather(std::span<const NetworkSample> samples, int folds, core::Random random) {
  const auto fold = deal_folds(samples.size(), folds, random);
  Profiles profiles{.overhead = fit_overhead(samples), .fold = fold, .folds = folds};
  std::map<std::string, KernelRows> kinds;
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const auto& network = samples[n];
    const double took = kernels_ms(network);
    const double overhead = profiles.overhead.of(network.kernels.size(), took);
    const double scale =
        std::clamp((network.latency_ms - overhead) / took, 1 / kMostScale, kMostScale);
    for (const auto& kernel : network.kernels) {
      auto& rows = kinds[kernel.features.kind];
      rows.kind = kernel.features.kind;
      rows.add(kernel.features.values, kernel.ms * scale, static_cast<int>(n), fold[n]);
    }
    profiles.latency_ms.push_back(network.latency_ms);
    profiles.kernels.push_back(network.kernels.size());
  }
  for (auto& [name, rows] : kinds) profiles.kinds.push_back(std::move(rows));
  return profiles;
}

Overhead fit_overhead(std::span<const NetworkSample> samples) {
  std::vector<Around> networks;
  for (const auto& sample : samples) networks.push_back(around_kernels(sample));
  leave_out_disturbed(networks);
  Overhead best = fit_full_from(0, networks);
  if (networks.size() < kLeastNetworksForShare) return best;
  // A runtime's own code and its threads are sooner at work again after a short network.
  double least = kShareWorthIt * squared_errors(best, networks);
  std::vector<double> took;
  for (const auto& network : networks) took.push_back(network.kernels_ms);
  for (const double share : {0.1, 0.2, 0.3, 0.4, 0.5}) {
    const auto overhead = fit_full_from(*core::quantile(took, share), networks);
    const double error = squared_errors(overhead, networks);
    if (error >= least) continue;
    least = error;
    best = overhead;
  }
  return best;
}

std::vector<KindModel::Known> spread_out(const KernelRows& rows, std::size_t count) {
  std::map<std::vector<double>, std::vector<double>> groups;
  for (std::size_t i = 0; i < rows.y.size(); ++i) {
    const auto row = rows.rows().row(i);
    groups[{row.begin(), row.end()}].push_back(rows.y[i]);
  }
  std::vector<KindModel::Known> all;
  for (const auto& [row, times] : groups)
    all.push_back({.features = row, .ms = *core::median(times)});

  std::vector<std::vector<double>> logs;
  for (const auto& known : all) logs.push_back(log_features(known.features));
  std::vector<KindModel::Known> chosen;
  std::vector<double> away(all.size(), std::numeric_limits<double>::infinity());
  std::size_t next = 0;
  while (chosen.size() < std::min(count, all.size())) {
    chosen.push_back(all[next]);
    for (std::size_t i = 0; i < all.size(); ++i)
      away[i] = std::min(away[i], distance_of_logs(logs[i], logs[next]));
    next = static_cast<std::size_t>(std::ranges::max_element(away) - away.begin());
  }
  return chosen;
}

std::vector<KernelRows> split_by_law(KernelRows rows, int folds) {
  std::vector<KernelRows> parts;
  const auto before = error_sum(rows, folds);
  auto split =
      before && rows.when.size() < kMostConditions ? best_split(rows, folds) : std::nullopt;
  const double margin = kPercent * static_cast<double>(rows.y.size());
  if (!split || split->error > *before * kMuchBetter || split->error > *before - margin) {
    parts.push_back(std::move(rows));
    return parts;
  }
  for (auto* half : {&split->below, &split->above})
    for (auto& part : split_by_law(std::move(*half), folds)) parts.push_back(std::move(part));
  return parts;
}

}  // namespace fleetfit::predict
