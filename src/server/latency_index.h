#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/store/store.h"

namespace fleetfit::server {

/// The newest measurement of each model on each device, kept in memory: a page that shows a hundred
/// devices and a hundred models asks for ten thousand of them. Reads from the store what is new
/// there; a measurement that is removed later stays until the program ends. Safe to use from many
/// threads.
class LatencyIndex {
 public:
  explicit LatencyIndex(store::Store& store) : store_(store) {}

  struct Cell {
    std::int64_t id = 0;
    std::optional<double> median_ms = std::nullopt;
    double low_ms = 0;  ///< of the median's interval, if there is a median
    double high_ms = 0;
    store::MeasurementStatus status = store::MeasurementStatus::ok;
    store::Time started = {};
  };
  struct Model {
    std::string hash = {};
    std::string name = {};
    std::string space = {};   ///< empty if it is no design of a space
    std::size_t devices = 0;  ///< on which it was measured
  };
  struct Device {
    std::string name = {};
    std::string fingerprint = {};  ///< of the newest measurement
    std::size_t models = 0;
  };

  /// Takes up what the store has got since the last time.
  Status refresh();

  std::int64_t measurements() const;
  /// By name, then hash.
  std::vector<Model> models() const;
  /// By name.
  std::vector<Device> devices() const;
  /// The devices NAME and NAME.…
  std::vector<Device> settings_of(std::string_view name) const;
  /// Nothing if the model was not measured on the device.
  std::optional<Cell> find(std::string_view model, std::string_view device) const;

  /// Medians of good measurements, as rows of (device, model, ms), of the designs of a space or,
  /// if it is empty, of everything; of the given devices alone.
  struct Column {
    std::string device = {};
    std::map<std::uint32_t, double> ms = {};  ///< by a number for the model
  };
  std::vector<Column> columns(std::span<const std::string> devices, std::string_view space) const;

 private:
  using Number = std::uint32_t;

  void add(const store::MeasurementRecord& record);
  Number model_number(const store::MeasurementRecord& record);
  Number device_number(const store::MeasurementRecord& record);

  store::Store& store_;
  std::mutex refreshing_;  // one at a time reads from the store
  mutable std::mutex mutex_;
  std::int64_t last_id_ = 0;
  std::int64_t count_ = 0;
  std::vector<Model> models_;
  std::vector<Device> devices_;
  std::map<std::string, Number, std::less<>> model_numbers_;
  std::map<std::string, Number, std::less<>> device_numbers_;
  std::vector<std::unordered_map<Number, Cell>> cells_;  // of each device, by model
};

}  // namespace fleetfit::server
