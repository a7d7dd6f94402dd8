#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/learned/device_features.h"
#include "fleetfit/space/table.h"

/// Where device features come from.
namespace fleetfit::learned {

struct ReferenceChoice {
  std::size_t count = 10;
  std::size_t candidates = 2000;  ///< at most as many rows are looked at, drawn by chance
  std::uint64_t seed = 1;
};

/// Rows of a table whose latencies tell its devices apart best: one after the other that which the
/// ones before explain least, over all devices (of logarithms, without each device's mean). Rows
/// with an empty cell are not taken. Fails with `invalid_input` if there are not that many rows
/// that say something new: at most as many as there are devices.
Result<std::vector<std::size_t>> choose_references(const space::DesignTable& table,
                                                   const ReferenceChoice& choice = {});

/// The rows of designs, by their texts. Fails with `invalid_input` on a text that is no design of
/// the space, and with `not_found` on a design that the table does not hold.
Result<std::vector<std::size_t>> find_references(const space::DesignTable& table,
                                                 const std::vector<std::string>& designs);

/// What `fleetfit device probe --json` printed, as the features of one device. Errors name the
/// field.
Result<DeviceFeatures> probe_features(std::string device, const core::JsonView& probe);

struct SheetFeatures {
  DeviceFeatures features;
  std::vector<std::string> left_out = {};  ///< columns that hold text
};

/// A data sheet: a column with the devices' names, and any others, of which those with numbers are
/// taken under their names. Fails with `invalid_input`, naming file, line and column, if the
/// numbers are absurd, if a device stands there twice, or if there are no numbers at all.
Result<SheetFeatures> sheet_features(const core::CsvTable& csv, std::string name,
                                     std::string_view device_column = "device");

}  // namespace fleetfit::learned
