#include "fleetfit/transfer/proxy_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace fleetfit::transfer {
namespace {

/// Devices without a proxy that this one would serve.
std::size_t served(const CorrelationMatrix& matrix, std::size_t proxy, double threshold,
                   const std::vector<bool>& has_proxy) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < has_proxy.size(); ++i)
    if (!has_proxy[i] && matrix.srcc[proxy][i] >= threshold) ++count;
  return count;
}

/// In the order in which they are taken. Every device serves itself, so it ends.
std::vector<std::size_t> covering_proxies(const CorrelationMatrix& matrix, double threshold) {
  const std::size_t devices = matrix.devices.size();
  std::vector<bool> has_proxy(devices, false);
  std::vector<std::size_t> proxies;
  while (std::ranges::count(has_proxy, false) > 0) {
    std::vector<std::size_t> counts(devices);
    for (std::size_t i = 0; i < devices; ++i) counts[i] = served(matrix, i, threshold, has_proxy);
    const auto best = static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin());
    proxies.push_back(best);
    for (std::size_t i = 0; i < devices; ++i)
      if (matrix.srcc[best][i] >= threshold) has_proxy[i] = true;
    has_proxy[best] = true;
  }
  return proxies;
}

}  // namespace

std::vector<RankedProxy> rank_proxies(const CorrelationMatrix& matrix) {
  std::vector<RankedProxy> ranking;
  const auto others = static_cast<double>(matrix.devices.size()) - 1;
  for (std::size_t i = 0; i < matrix.devices.size(); ++i) {
    const double sum = std::accumulate(matrix.srcc[i].begin(), matrix.srcc[i].end(), -1.0);
    ranking.push_back({.device = matrix.devices[i], .mean_srcc = others > 0 ? sum / others : 0.0});
  }
  std::ranges::stable_sort(ranking, std::ranges::greater(), &RankedProxy::mean_srcc);
  return ranking;
}

std::vector<PoolMember> cover_devices(const CorrelationMatrix& matrix, double threshold) {
  const auto proxies = covering_proxies(matrix, threshold);
  std::vector<PoolMember> members;
  for (const auto proxy : proxies) members.push_back({.proxy = matrix.devices[proxy]});
  for (std::size_t device = 0; device < matrix.devices.size(); ++device) {
    std::size_t nearest = 0;
    for (std::size_t i = 1; i < proxies.size(); ++i) {
      const bool is_nearer =
          matrix.srcc[proxies[i]][device] > matrix.srcc[proxies[nearest]][device];
      if (is_nearer) nearest = i;
    }
    members[nearest].devices.push_back(matrix.devices[device]);
  }
  return members;
}

Result<ProxyPool::Place> ProxyPool::place(std::string device, std::vector<double> latency_ms) {
  if (const auto order = core::spearman(latency_ms, latency_ms); !order)
    return core::within(fmt::format("device '{}'", device), order.error());
  Place place;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto agreement = estimate_srcc(latency_ms_[i], latency_ms);
    if (!agreement) return core::within(fmt::format("device '{}'", device), agreement.error());
    if (place.agreement && place.agreement->srcc >= agreement->srcc) continue;
    place.agreement = *agreement;
    place.proxy = names_[i];
  }
  place.is_new = !place.agreement || place.agreement->srcc < threshold_;
  if (!place.is_new) return place;
  place.proxy = device;
  names_.push_back(std::move(device));
  latency_ms_.push_back(std::move(latency_ms));
  return place;
}

}  // namespace fleetfit::transfer
