#pragma once

#include <string>

#include "fleetfit/store/records.h"

namespace fleetfit::store {

/// A date, so many milliseconds after one in 2025.
inline Time date(std::int64_t ms = 0) {
  return Time(std::chrono::milliseconds(1'760'000'000'000 + ms));
}

/// Its operators differ from each other in every field.
inline std::vector<OperatorTime> example_operators(int count) {
  std::vector<OperatorTime> operators;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    operators.push_back({.name = "node" + number,
                         .type = i % 2 == 0 ? "Conv" : "Relu",
                         .kernel = "kernel" + number,
                         .ms = 0.1 * i});
  }
  return operators;
}

/// Just what an ok measurement must have.
inline MeasurementRecord plain_measurement() {
  return {.device = "pi4", .latency = Latency{.median_ms = 1.5}, .started = date()};
}

/// Every field has a value, each another one.
inline MeasurementRecord full_measurement() {
  return {.device = "pi4",
          .device_fingerprint = "f00d",
          .model_hash = "abc123",
          .model_name = "resnet18",
          .space = "nasbench201",
          .design = "012340",
          .status = MeasurementStatus::unstable,
          .reason = "the clock changed",
          .latency = Latency{.median_ms = 1.1,
                             .mean_ms = 1.2,
                             .p90_ms = 1.3,
                             .p99_ms = 1.4,
                             .ci95_ms = {1.05, 1.15}},
          .runs = 321,
          .overhead_ms = 0.07,
          .peak_memory_bytes = 5'000'000'000,
          .energy = Energy{.mj = 2.5, .source = EnergySource::modelled},
          .protocol = R"({"warm_up":5})",
          .conditions = R"({"mhz":1500})",
          .started = date(),
          .operators = example_operators(3)};
}

}  // namespace fleetfit::store
