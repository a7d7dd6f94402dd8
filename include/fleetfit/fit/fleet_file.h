#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"

/// Fleet files (docs/formats/fleet.md): which devices there are, and what each may cost.
namespace fleetfit::fit {

/// A budget as it is written: an amount, or a share of what the original costs.
struct WrittenBudget {
  double value = 0;
  bool is_share = false;  ///< then 0.5 stands for 50 %
};

struct WrittenBudgets {
  std::optional<WrittenBudget> latency = std::nullopt;  ///< ms
  std::optional<WrittenBudget> energy = std::nullopt;   ///< mJ
  std::optional<WrittenBudget> memory = std::nullopt;   ///< MB
  std::string statistic = "median";
  std::size_t line = 1;
};

/// A device of the fleet. Which of the fields it may have depends on the fleet.
struct FleetDevice {
  std::string name = {};
  std::size_t line = 1;
  WrittenBudgets budgets = {};
  bool optional = false;  ///< left out where its runtime or limits are not there
  /// Of a model's fleet: how it runs here.
  std::string device = {};  ///< one of `fleetfit device`; "": as the next fields say
  std::string runtime = "auto";
  int threads = 1;
  std::string cores = {};
  std::string precision = "fp32";
  std::optional<int> cpu_quota_percent = std::nullopt;
  std::string memory_limit = {};
  std::string agent = {};  ///< of the fleet's server: it runs there, as the fields above say
  /// Of a space's fleet: where designs are measured, and who is known to be like it.
  std::string measure = {};                  ///< a source; "": its column of the fleet's table
  std::vector<std::string> references = {};  ///< columns; empty: all but its own
  /// Of both: a source or table of latencies that is all there is of a device that nobody here has.
  std::string latency = {};

  /// Of a space's fleet: by a device of this machine or an agent, not looked up.
  bool is_measured() const;
};

/// How a model is made elastic; what is absent is as `fleetfit elastify` has it.
struct ElasticPlan {
  std::optional<double> granularity = std::nullopt;
  std::optional<int> merge = std::nullopt;
  std::string shrink = {};
  std::optional<int> distill_epochs = std::nullopt;
  std::optional<int> tune_epochs = std::nullopt;
  std::optional<std::int64_t> limit = std::nullopt;
  std::string compute = {};
};

struct Fleet {
  std::string name = {};
  std::filesystem::path file = {};
  /// A model's fleet.
  std::string model = {};   ///< a file, relative to the fleet file's folder
  std::string bundle = {};  ///< the model made elastic already
  std::string data = {};
  ElasticPlan elastic = {};
  std::size_t samples = 500;  ///< images to search with
  /// A space's fleet.
  std::string space = {};
  std::string accuracy = {};  ///< a source
  std::string table = {};     ///< latencies of known devices, a column each
  std::string energy_table = {};
  std::string memory_table = {};
  std::string original = {};  ///< a design
  /// Of both.
  std::size_t measurements = 0;  ///< on each device to learn; 0: what suits
  std::size_t confirmations = 4;
  double measure_s = 2;  ///< most seconds for each measurement on a device of this machine
  std::optional<double> share_within = std::nullopt;
  std::vector<FleetDevice> devices = {};
  /// For devices with agents.
  std::string server = {};      ///< its URL
  std::string token_file = {};  ///< a token of role admin
  std::string authority = {};   ///< certificate to trust instead of the system's
  double wait_s = 600;          ///< how long an agent that is away is waited for

  bool is_of_space() const { return !space.empty(); }

  /// "fleet.yaml:14: devices[2]", for what only the caller can check.
  std::string place(const FleetDevice& device) const;
  /// A path of the file, as seen from where we are.
  std::string located(const std::string& path) const;
  /// The same for the file within a source such as table:FILE#COLUMN.
  std::string located_source(const std::string& source) const;
};

/// Fails with `invalid_input`, naming file, line and key.
Result<Fleet> parse_fleet(std::string_view text, const std::filesystem::path& file);

/// Also fails as `core::read_file` does.
Result<Fleet> read_fleet(const std::filesystem::path& file);

}  // namespace fleetfit::fit
