#include "predict/kernel_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fleetfit::predict {

Status check_features(const cost::KernelFeatures& features) {
  const auto& names = cost::feature_names(features.kind);
  if (features.values.size() != names.size()) {
    return fail(ErrorCode::invalid_input, fmt::format("it has {} features instead of {}",
                                                      features.values.size(), names.size()));
  }
  for (std::size_t j = 0; j < names.size(); ++j) {
    if (std::isfinite(features.values[j]) && features.values[j] >= 0) continue;
    return fail(
        ErrorCode::invalid_input,
        fmt::format("its feature {} is {}, no finite number from 0", names[j], features.values[j]));
  }
  return {};
}

NamedFeatures::NamedFeatures(const cost::KernelFeatures& features)
    : features_(features), names_(cost::feature_names(features.kind)) {}

double NamedFeatures::get(std::string_view name, double fallback) const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end()) return fallback;
  return features_.values[static_cast<std::size_t>(found - names_.begin())];
}

}  // namespace fleetfit::predict
