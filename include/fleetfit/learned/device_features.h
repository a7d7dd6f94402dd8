#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/space/table.h"

/// What is known about devices, as numbers for networks that take a device as input, and where it
/// comes from. docs/formats/device_features.md describes the files.
namespace fleetfit::learned {

enum class FeatureKind : std::uint8_t {
  reference_design,   ///< "ref:SPACE@VERSION:DESIGN", its latency in ms
  reference_network,  ///< "net:NAME", its latency in ms
  probe,              ///< "probe:NAME", what `device probe` found
  specification,      ///< "spec:NAME", from a data sheet
};

/// Latencies say something about each other: what is common to all of them is the device's speed.
constexpr bool is_latency(FeatureKind kind) {
  return kind == FeatureKind::reference_design || kind == FeatureKind::reference_network;
}

/// A feature that says by its name what it is, so that numbers of another space or of another
/// version of it are never taken for these.
struct FeatureColumn {
  FeatureKind kind = FeatureKind::specification;
  std::string name = {};   ///< the design's text, or the name of a network, rate or fact
  std::string space = {};  ///< of a reference design
  int version = 0;         ///< of that space

  /// The column's name in files.
  std::string text() const;

  bool operator==(const FeatureColumn&) const = default;
};

/// Fails with `invalid_input`, saying which kinds there are.
Result<FeatureColumn> parse_feature_column(std::string_view text);

/// Devices and their features. A value that nobody knows is NaN.
struct DeviceFeatures {
  std::string name = {};  ///< of the file
  std::vector<FeatureColumn> columns = {};
  std::vector<std::string> devices = {};
  std::vector<double> values = {};  ///< a row for each device

  std::span<const double> row(std::size_t device) const {
    return std::span(values).subspan(device * columns.size(), columns.size());
  }

  /// `not_found`, naming the file and some of the devices that there are.
  Result<std::size_t> find_device(std::string_view device) const;
};

/// A table with the column `device` and columns of features; an empty cell is missing. Fails with
/// `invalid_input`, naming file, line and column, on a column that is no feature, on a device
/// without a name or one that stands there twice, on a cell that is no number, and on a number that
/// cannot be true: a latency that is not positive or longer than a day, anything negative.
Result<DeviceFeatures> device_features_of(const core::CsvTable& csv, std::string name);

/// Also fails as `read_csv` does.
Result<DeviceFeatures> read_device_features(const std::filesystem::path& path);

std::string format_device_features(const DeviceFeatures& features);

Status write_device_features(const std::filesystem::path& path, const DeviceFeatures& features);

/// The latencies of some rows of a table as features of all of its devices. Fails with
/// `invalid_input` without rows, on a row that the table does not have or that is named twice.
Result<DeviceFeatures> reference_features(const space::DesignTable& table,
                                          std::span<const std::size_t> rows);

/// All features of both, by device: a device that one of them does not know lacks its columns.
/// Fails with `invalid_input` if a column is in both.
Result<DeviceFeatures> join_features(const DeviceFeatures& a, const DeviceFeatures& b);

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
