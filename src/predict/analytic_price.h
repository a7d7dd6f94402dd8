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

/// Fails with `invalid_input`, naming the field, unless the value is finite and above 0 (or from
/// 0).
Status check_positive(std::string_view field, double value);
Status check_not_negative(std::string_view field, double value);

}  // namespace fleetfit::predict
