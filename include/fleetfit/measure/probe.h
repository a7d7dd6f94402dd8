#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/measure/conditions.h"
#include "fleetfit/measure/hardware.h"

/// What a machine can do, found out in some seconds: how fast it computes, how fast its caches and
/// memory move data, and how fast the engine executes each class of operators. docs/probe.md says
/// how each number is measured.
namespace fleetfit::measure {

/// A speed that was measured several times.
struct Rate {
  std::string name = {};     ///< unique and stable, with its unit: "conv_fp32_gflop_per_s"
  std::string subject = {};  ///< for people: "dense 3x3 convolution, float"
  std::string unit = {};     ///< "GFLOP/s", "GOP/s" or "GB/s"
  double value = 0;          ///< the best of the runs if it is a bound, else their median
  double median = 0;
  double best = 0;
  double spread = 0;  ///< from the 10th to the 90th percentile, as a share of the median
  int runs = 0;

  bool operator==(const Rate&) const = default;
};

struct Feature {
  std::string name;
  double value = 0;

  bool operator==(const Feature&) const = default;
};

struct ProbeReport {
  Hardware hardware = {};
  int threads = 1;
  std::string kernels = {};  ///< libraries of the engine and their versions
  std::vector<Rate> rates = {};
  Conditions conditions = {};  ///< a busy machine is a slower one
  double elapsed_s = 0;

  /// The rate of that name, if it was measured.
  std::optional<double> value(std::string_view name) const;
};

struct ProbeOptions {
  int threads = 1;
  double seconds = 10;  ///< for all rates together; each is measured a few times at least
  std::stop_token stop = {};
};

/// Facts of this machine and all rates. Fails with `invalid_input` on threads outside 1 to
/// `kMaxThreads` or seconds that are not positive, with `cancelled` when stopped, and as
/// `read_hardware` and the engine do.
Result<ProbeReport> probe_device(const ProbeOptions& options, core::Progress& progress,
                                 const core::Clock& clock);

/// The device as numbers for predictors: facts, then rates, always in the same order and under the
/// same names. What a machine does not have or tell (a third cache, its frequency) is left out.
std::vector<Feature> features(const ProbeReport& report);

/// {"hardware", "threads", "kernels", "rates": [{"name", "subject", "unit", "value", "median",
/// "best", "spread", "runs"}], "features": {name: value}, "conditions", "elapsed_s"}.
nlohmann::ordered_json to_json(const ProbeReport& report);

}  // namespace fleetfit::measure
