#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/learned/device_features.h"

namespace fleetfit::learned {

/// How features become inputs of a network, learned from the devices that it was trained with and
/// kept with it. Inputs have mean 0 and standard deviation 1 over those devices:
/// - if there are latencies, how much slower the device is than the mean one, over those that are
///   known (logarithms);
/// - each column: of latencies the logarithm without that common slowness, of anything else
///   log(1 + value); 0 where it is missing;
/// - for each column 1 where it is missing, else 0.
/// Immutable; safe to use from many threads.
class FeatureScaling {
 public:
  /// Fails with `invalid_input`, naming the column, if no device has a value in it.
  static Result<FeatureScaling> fit(const DeviceFeatures& devices);

  std::span<const FeatureColumn> columns() const { return columns_; }

  /// How many numbers a device becomes.
  std::size_t inputs() const { return 2 * columns_.size() + (has_level_ ? 1 : 0); }
  std::vector<std::string> input_names() const;

  /// One row of raw values, in the order of `columns`, NaN where unknown, into `out`, which has
  /// room for `inputs` numbers.
  void scale(std::span<const double> row, std::span<double> out) const;

  /// A row of inputs for each device of a file, whose columns may stand in another order and be
  /// more. Fails with `invalid_input`, naming the file and the column, if one of `columns` is not
  /// there (saying so if it is there for another space or another version of it), and, naming the
  /// device, if all of its features are missing.
  Result<std::vector<double>> scale(const DeviceFeatures& devices) const;

  /// The raw values of one device in the order of `columns`. Fails in the same way.
  Result<std::vector<double>> row_of(const DeviceFeatures& devices, std::size_t device) const;

  /// 64 hexadecimal digits that depend on the columns and on nothing else.
  std::string fingerprint() const;

  /// {"columns": [{"name", "mean", "spread"}], "level_spread"}; the last if there are latencies.
  nlohmann::json to_json() const;

  /// Reads what `to_json` wrote; errors name the field.
  static Result<FeatureScaling> from_json(const core::JsonView& json);

 private:
  FeatureScaling() = default;
  void fit_spreads(const DeviceFeatures& devices);
  double level_of(std::span<const double> row) const;
  Result<std::vector<std::size_t>> find_columns(const DeviceFeatures& devices) const;

  std::vector<FeatureColumn> columns_;
  std::vector<double> means_;    // of the transformed values
  std::vector<double> spreads_;  // of them without the level; 1 for a constant
  double level_spread_ = 1;
  bool has_level_ = false;
};

}  // namespace fleetfit::learned
