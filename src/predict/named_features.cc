#include "predict/named_features.h"

#include <algorithm>

namespace fleetfit::predict {

NamedFeatures::NamedFeatures(const cost::KernelFeatures& features)
    : features_(features), names_(cost::feature_names(features.kind)) {}

double NamedFeatures::get(std::string_view name, double fallback) const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end()) return fallback;
  return features_.values[static_cast<std::size_t>(found - names_.begin())];
}

}  // namespace fleetfit::predict
