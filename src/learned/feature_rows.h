#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fleetfit/learned/device_features.h"

namespace fleetfit::learned {

/// Which column of a table is which feature.
struct PlacedFeature {
  std::size_t place = 0;
  FeatureColumn feature = {};
};

/// The rows of a table whose column `key` names devices. Errors are those of
/// `device_features_of`.
Result<DeviceFeatures> read_feature_rows(const core::CsvTable& csv, std::size_t key,
                                         const std::vector<PlacedFeature>& columns,
                                         std::string name);

}  // namespace fleetfit::learned
