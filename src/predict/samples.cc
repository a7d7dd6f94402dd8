#include "fleetfit/predict/samples.h"

#include <fmt/format.h>

#include <cmath>

#include "predict/kernel_features.h"

namespace fleetfit::predict {
namespace {

Status check_time(double ms) {
  if (std::isfinite(ms) && ms > 0) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("{} ms is no time: it must be positive and finite", ms));
}

Status check_kernel(const KernelSample& kernel) {
  FLEETFIT_TRY(check_features(kernel.features));
  return check_time(kernel.ms);
}

Status check_network(const NetworkSample& network) {
  if (network.kernels.empty()) return fail(ErrorCode::invalid_input, "it has no kernels");
  if (!std::isfinite(network.overhead_ms) || network.overhead_ms < 0) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("its overhead of {} ms is negative or not finite", network.overhead_ms));
  }
  if (auto checked = check_time(network.latency_ms); !checked)
    return core::within("latency", checked.error());
  for (std::size_t i = 0; i < network.kernels.size(); ++i) {
    if (auto checked = check_kernel(network.kernels[i]); !checked) {
      return core::within(fmt::format("kernel {} ({})", i, network.kernels[i].features.kind),
                          checked.error());
    }
  }
  return {};
}

}  // namespace

Status check_samples(std::span<const NetworkSample> samples) {
  if (samples.empty()) return fail(ErrorCode::invalid_input, "there are no networks to learn from");
  for (const auto& network : samples) {
    if (auto checked = check_network(network); !checked)
      return core::within(fmt::format("network {}", network.name), checked.error());
  }
  return {};
}

}  // namespace fleetfit::predict
