#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/learned/network_latency.h"

namespace fleetfit::bench {

/// The benchmark table that ncnn publishes: each run is a device (a board with a number of threads,
/// its large or small cores, or its GPU).
struct NcnnTable {
  learned::NetworkTable table;
  std::vector<std::string> chips;          ///< of each device; several boards can have one chip
  std::vector<std::string> classes;        ///< of each device: "arm in-order", …
  std::vector<std::string> architectures;  ///< of each network; float and int8 are one
};

/// `folder` holds latency/ncnn_runs.csv, latency/ncnn_latency.csv and models/ncnn_params. What the
/// device's name says (class of its cores, GHz, threads) is its specification.
Result<NcnnTable> read_ncnn(const std::filesystem::path& folder);

}  // namespace fleetfit::bench
