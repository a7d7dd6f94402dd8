#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/cost/features.h"

namespace fleetfit::predict {

/// Fails with `invalid_input` if there are not as many values as the kind has features, or one is
/// negative or not finite.
Status check_features(const cost::KernelFeatures& features);

/// A kernel's features by name.
class NamedFeatures {
 public:
  /// Borrows the features, which must be as many as their kind has.
  explicit NamedFeatures(const cost::KernelFeatures& features);

  /// `fallback` if the kind has no such feature.
  double get(std::string_view name, double fallback) const;

 private:
  const cost::KernelFeatures& features_;
  const std::vector<std::string>& names_;
};

}  // namespace fleetfit::predict
