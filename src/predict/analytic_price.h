#pragma once

#include <functional>
#include <span>

#include "fleetfit/predict/kernel_predictor.h"

namespace fleetfit::predict {

struct AnalyticRates {
  double kernel_ms = 0;
  double network_ms = 0;
  double spread90 = 0;
};

/// The sum of what `ms_of` says of each kernel, with the times to start them.
Result<NetworkPrice> analytic_price(
    std::span<const cost::KernelFeatures> kernels, const AnalyticRates& rates,
    const std::function<double(const cost::KernelFeatures&)>& ms_of);

}  // namespace fleetfit::predict
