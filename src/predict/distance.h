#pragma once

#include <span>
#include <vector>

namespace fleetfit::predict {

/// How unlike two rows of non-negative features are: the root of the mean squared logarithm of the
/// ratio, where zero counts as nearly one. 0.7 means that a typical feature differs by a factor
/// of 2.
double log_distance(std::span<const double> a, std::span<const double> b);

/// The same for rows of `log_features`, of which many are compared.
double distance_of_logs(std::span<const double> a, std::span<const double> b);
std::vector<double> log_features(std::span<const double> row);

}  // namespace fleetfit::predict
