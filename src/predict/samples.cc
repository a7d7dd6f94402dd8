#include "fleetfit/predict/samples.h"

#include <fmt/format.h>

#include <cmath>

namespace fleetfit::predict {
namespace {

Status check_time(double ms) {
  if (std::isfinite(ms) && ms > 0) return {};
  return refuse(fmt::format("{} ms is no time: it must be positive and finite", ms));
}

Status check_kernel(const KernelSample& kernel) {
  FLEETFIT_TRY(check_features(kernel.features));
  return check_time(kernel.ms);
}

Status check_network(const NetworkSample& network) {
  if (network.kernels.empty()) return refuse("it has no kernels");
  if (!std::isfinite(network.overhead_ms) || network.overhead_ms < 0) {
    return refuse(
        fmt::format("its overhead of {} ms is negative or not finite", network.overhead_ms));
  }
  FLEETFIT_TRY(core::within("latency", check_time(network.latency_ms)));
  for (std::size_t i = 0; i < network.kernels.size(); ++i) {
    if (auto checked = check_kernel(network.kernels[i]); !checked) {
      return core::within(fmt::format("kernel {} ({})", i, network.kernels[i].features.kind),
                          checked.error());
    }
  }
  return {};
}

}  // namespace

Status check_features(const cost::KernelFeatures& features) {
  const auto& names = cost::feature_names(features.kind);
  if (features.values.size() != names.size()) {
    return refuse(
        fmt::format("it has {} features instead of {}", features.values.size(), names.size()));
  }
  for (std::size_t j = 0; j < names.size(); ++j) {
    if (std::isfinite(features.values[j]) && features.values[j] >= 0) continue;
    return refuse(
        fmt::format("its feature {} is {}, no finite number from 0", names[j], features.values[j]));
  }
  return {};
}

Status check_samples(std::span<const NetworkSample> samples) {
  if (samples.empty()) return refuse("there are no networks to learn from");
  for (const auto& network : samples) {
    FLEETFIT_TRY(core::within(fmt::format("network {}", network.name), check_network(network)));
  }
  return {};
}

}  // namespace fleetfit::predict
