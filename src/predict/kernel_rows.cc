#include "predict/kernel_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "fleetfit/core/statistics.h"
#include "predict/distance.h"

namespace fleetfit::predict {
namespace {

// A profile that is farther off than this says nothing about the network's latency.
constexpr double kMostScale = 2;

double scale_of(const NetworkSample& network) {
  double sum = network.overhead_ms;
  for (const auto& kernel : network.kernels) sum += kernel.ms;
  return std::clamp(network.latency_ms / sum, 1 / kMostScale, kMostScale);
}

std::vector<int> deal_out(std::size_t networks, int folds, core::Random random) {
  std::vector<std::size_t> order(networks);
  std::iota(order.begin(), order.end(), std::size_t{0});
  random.shuffle(order);
  std::vector<int> fold(networks);
  for (std::size_t i = 0; i < networks; ++i)
    fold[order[i]] = static_cast<int>(i % static_cast<std::size_t>(folds));
  return fold;
}

// The overhead of a network that was disturbed between its kernels says nothing: one whose share of
// the latency is far above the others' is left out.
double most_credible_share(const Profiles& profiles) {
  std::vector<double> shares;
  for (std::size_t n = 0; n < profiles.latency_ms.size(); ++n)
    shares.push_back(profiles.overhead_ms[n] / profiles.latency_ms[n]);
  const double middle = *core::median(shares);
  return middle + std::max(5 * *core::mad(shares), middle);
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
  const auto fold = deal_out(samples.size(), folds, random);
  Profiles profiles{.fold = fold, .folds = folds};
  std::map<std::string, KernelRows> kinds;
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const auto& network = samples[n];
    const double scale = scale_of(network);
    for (const auto& kernel : network.kernels) {
      auto& rows = kinds[kernel.features.kind];
      rows.kind = kernel.features.kind;
      rows.add(kernel.features.values, kernel.ms * scale, static_cast<int>(n), fold[n]);
    }
    profiles.overhead_ms.push_back(network.overhead_ms * scale);
    profiles.latency_ms.push_back(network.latency_ms);
    profiles.kernels.push_back(static_cast<int>(network.kernels.size()));
  }
  for (auto& [name, rows] : kinds) profiles.kinds.push_back(std::move(rows));
  return profiles;
}

Overhead fit_overhead(const Profiles& profiles) {
  const double most = most_credible_share(profiles);
  // The sums of least squares with two unknowns, each network weighted by its latency.
  double s00 = 0;
  double s01 = 0;
  double s11 = 0;
  double t0 = 0;
  double t1 = 0;
  for (std::size_t n = 0; n < profiles.latency_ms.size(); ++n) {
    if (profiles.overhead_ms[n] > most * profiles.latency_ms[n]) continue;
    const double weight = 1 / (profiles.latency_ms[n] * profiles.latency_ms[n]);
    const double kernels = profiles.kernels[n];
    s00 += weight;
    s01 += weight * kernels;
    s11 += weight * kernels * kernels;
    t0 += weight * profiles.overhead_ms[n];
    t1 += weight * kernels * profiles.overhead_ms[n];
  }
  const double determinant = s00 * s11 - s01 * s01;
  if (determinant > 1e-9 * s00 * s11) {
    const Overhead both{.network_ms = (t0 * s11 - t1 * s01) / determinant,
                        .kernel_ms = (t1 * s00 - t0 * s01) / determinant};
    if (both.network_ms >= 0 && both.kernel_ms >= 0) return both;
    if (both.network_ms < 0) return {.network_ms = 0, .kernel_ms = t1 / s11};
  }
  return {.network_ms = t0 / s00, .kernel_ms = 0};
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

}  // namespace fleetfit::predict
