#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/app/sources.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"

/// Use case: the whole way from a fleet file to a fitted model for each of its devices.
/// docs/fitting.md tells how, docs/formats/fleet.md has the files.
namespace fleetfit::app {

struct FitRequest {
  std::filesystem::path fleet = {};   ///< the fleet file
  std::filesystem::path output = {};  ///< the folder to write; what is in it is used again
  /// Also find the fewest models that serve all devices, each within so many points of accuracy of
  /// its own best; instead of what the file says.
  std::optional<double> share_within = std::nullopt;
  std::uint64_t seed = 1;
  int threads = 1;
};

/// A budget as it holds on one device.
struct FitBudget {
  Quantity quantity = Quantity::latency_ms;
  double limit = 0;
  std::string statistic = "median";  ///< of the runs: median, mean, p90 or p99
  /// Of the original's cost on the device, if the file says it so.
  std::optional<double> share = std::nullopt;
};

/// What a design is expected to cost, with the range in which nine of ten measurements lie.
struct ExpectedRange {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// A design on a device. Costs stand in the order of the device's budgets.
struct FitPoint {
  std::string design = {};
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  std::vector<ExpectedRange> expected = {};  ///< empty: nothing was expected of it
  std::vector<double> measured = {};         ///< empty: it was not measured
  bool confirms = false;                     ///< measured as a candidate, not to learn
};

enum class FitState : std::uint8_t {
  fitted,       ///< it has a design that was measured and keeps all budgets
  predicted,    ///< nothing can be measured there; its design keeps them by all that is known
  unreachable,  ///< none does; `nearest` is the nearest possible
  waiting,      ///< somebody has to measure `measure_next`
  failed,       ///< `reason` tells why
};

/// "fitted", "predicted", …
std::string_view to_string(FitState state);

struct FittedDevice {
  std::string name = {};
  std::string about = {};  ///< what it is, and where its numbers come from
  FitState state = FitState::failed;
  std::string reason = {};
  std::vector<FitBudget> budgets = {};
  std::optional<FitPoint> original = std::nullopt;  ///< the model that it had before, if any
  std::optional<FitPoint> best = std::nullopt;
  std::optional<FitPoint> nearest = std::nullopt;
  std::vector<FitPoint> tried = {};   ///< all that was measured, in order
  std::vector<FitPoint> pool = {};    ///< the best at other costs, the cheapest first
  std::vector<FitPoint> better = {};  ///< what larger budgets would give
  std::vector<std::string> measure_next = {};
  std::vector<std::filesystem::path> files = {};  ///< written for it, relative to the folder
  double seconds = 0;  ///< of measuring and searching, as far as known from this run
};

/// One of the fewest models that serve all devices.
struct SharedModel {
  std::string design = {};
  double accuracy = 0;
  std::vector<std::string> devices = {};  ///< on each, it was measured and keeps the budgets
};

/// What fitting all together costs, beside fitting each alone.
struct FitAccount {
  std::size_t measurements = 0;
  double seconds = 0;
  std::size_t alone_measurements = 0;
  double alone_seconds = 0;
  std::string alone_means = {};  ///< how the cost of fitting alone was reckoned
};

struct FitReport {
  std::string name = {};
  std::string about = {};  ///< model or space, data
  std::string accuracy_about = {};
  double accuracy_scale = 1;  ///< times this, accuracies are percent
  std::vector<FittedDevice> devices = {};
  std::vector<std::string> left_out = {};  ///< devices that are not there, with the reason
  std::optional<double> share_within = std::nullopt;
  std::vector<SharedModel> shared = {};
  std::size_t sharing_measurements = 0;
  FitAccount account = {};
  std::filesystem::path page = {};
  std::filesystem::path bundle = {};  ///< for self-adaptation; may be empty

  /// Every device has a design that keeps its budgets.
  bool all_fitted() const;
};

/// Fits all devices of a fleet and writes folder and report. What was measured is kept in the store
/// at once, and steps that take long are kept in the folder: work that was stopped or killed goes
/// on where it was and comes to the same result.
///
/// A device that cannot keep its budgets, fails or waits is told so in the report and is no
/// failure. Fails with `invalid_input`, naming file, line and key, on a fleet file that makes no
/// sense, as reading the files that it names does, and with `cancelled` when stopped.
Result<FitReport> fit_fleet(Workplace& workplace, const FitRequest& request,
                            core::Progress& progress, const std::stop_token& stop);

nlohmann::ordered_json to_json(const FitReport& report);

}  // namespace fleetfit::app
