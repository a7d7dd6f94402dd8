#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/space/quantity.h"

/// What fitting a fleet finds. docs/fitting.md says what it means, docs/formats/fleet.md has the
/// files.
namespace fleetfit::fit {

/// A budget as it holds on one device.
struct FitBudget {
  space::Quantity quantity = space::Quantity::latency_ms;
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
  /// By which it is chosen; NaN if it was not asked for.
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  /// On data that nothing was chosen by, if there is such data.
  std::optional<double> test_accuracy = std::nullopt;
  std::vector<ExpectedRange> expected = {};  ///< empty: nothing was expected of it
  std::vector<double> measured = {};         ///< empty: it was not measured
  bool confirms = false;                     ///< measured as a candidate, not to learn

  /// What the report says.
  double reported_accuracy() const { return test_accuracy.value_or(accuracy); }
};

enum class FitState : std::uint8_t {
  fitted,       ///< it has a design that was measured and keeps all budgets
  predicted,    ///< nothing can be measured there; its design keeps them by all that is known
  unreachable,  ///< none does; `nearest` is the nearest possible
  waiting,      ///< somebody has to measure `measure_next`
  failed,       ///< `reason` says why
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
};

/// One of the fewest models that serve all devices.
struct SharedModel {
  std::string design = {};
  double accuracy = 0;
  std::optional<double> test_accuracy = std::nullopt;
  std::vector<std::string> devices = {};  ///< on each, it was measured and keeps the budgets

  double reported_accuracy() const { return test_accuracy.value_or(accuracy); }
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

nlohmann::ordered_json to_json(const FitReport& report);

/// A page of HTML: what each device gets, how sure that is, and what it cost to find out.
std::string fit_page(const FitReport& report);

/// Writes the folder's fit.json, report.html (the report's `page`) and a devices/NAME/device.json
/// for each device.
Status write_report(const FitReport& report, const std::filesystem::path& folder);

}  // namespace fleetfit::fit
