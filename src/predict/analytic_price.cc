#include "predict/analytic_price.h"

#include <fmt/format.h>

#include <algorithm>

#include "predict/conformal.h"
#include "predict/kernel_features.h"

namespace fleetfit::predict {
namespace {

constexpr double kLeastPriceMs = 1e-6;

}  // namespace

Result<NetworkPrice> analytic_price(
    std::span<const cost::KernelFeatures> kernels, const AnalyticRates& rates,
    const std::function<double(const cost::KernelFeatures&)>& ms_of) {
  NetworkPrice price{.overhead_ms = rates.network_ms};
  price.latency_ms = rates.network_ms;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (auto checked = check_features(kernels[i]); !checked)
      return core::within(fmt::format("kernel {} ({})", i, kernels[i].kind), checked.error());
    const double ms = std::max(rates.kernel_ms + ms_of(kernels[i]), kLeastPriceMs);
    price.kernels.push_back({.ms = ms, .interval90 = around(ms, rates.spread90)});
    price.latency_ms += ms;
  }
  price.interval90 = around(price.latency_ms, rates.spread90);
  return price;
}

}  // namespace fleetfit::predict
