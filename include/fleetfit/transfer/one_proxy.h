#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/source.h"
#include "fleetfit/transfer/adaproxy.h"
#include "fleetfit/transfer/linear_proxy.h"
#include "fleetfit/transfer/monotonicity.h"

/// The best designs for a device of which a known one is the proxy, from a handful of measurements
/// (algorithm 1 of "One Proxy Device Is Enough").
namespace fleetfit::transfer {

/// What the device is needed for. All may fail; the failure is passed on.
struct OneProxyActions {
  /// Latency of each design on the target; NaN for one that cannot be measured, which is left out.
  std::function<Result<std::vector<double>>(space::DesignBatch)> measure = {};
  /// Designs of which none is worse than another in both latency by this source and accuracy.
  std::function<Result<space::Population>(const space::Source& latency)> search = {};
};

struct OneProxyOptions {
  std::size_t samples = 30;  ///< measured first
  std::size_t step = 10;     ///< measured more while the threshold is not reached
  double threshold = 0.9;    ///< rank correlation that is enough
  int validation = 20;       ///< set aside while adapting, but no more than a third of the samples
};

/// What a number of samples has shown.
struct OneProxyStep {
  std::size_t samples = 0;
  SrccEstimate proxy = {};                   ///< of the proxy as it is
  std::optional<SrccEstimate> adapted = {};  ///< on samples that were set aside
};

struct ParetoDesign {
  std::vector<space::Choice> design = {};
  double latency_ms = 0;  ///< measured on the target
  double accuracy = 0;
};

struct OneProxyResult {
  std::vector<OneProxyStep> steps = {};
  std::optional<AdaptedProxy> adapted = {};  ///< none: the proxy is used as it is
  bool reaches_threshold = false;
  /// Of all that was measured, samples too, by latency; none is worse than another in both.
  std::vector<ParetoDesign> pareto = {};
  std::size_t dropped = 0;       ///< found by the search, but dominated on the target
  std::size_t measurements = 0;  ///< all, with those of the search's designs
};

/// Measures samples, checks that the proxy orders them as the target does, and adapts it if that is
/// not certain. Adds samples until the threshold holds or all of `samples` are measured. Then it
/// searches (by the proxy, too, if the threshold was not reached), measures what was found and
/// drops dominated designs. Fails with `invalid_input` if there are fewer samples than asked for,
/// and as its actions, `estimate_srcc` and `adapt` do.
Result<OneProxyResult> fit_one_proxy(const LinearProxy& proxy, const space::Source& accuracy,
                                     space::DesignBatch samples, const OneProxyActions& actions,
                                     const OneProxyOptions& options = {});

/// A proxy as it is, for searches. Borrows it.
std::unique_ptr<const space::Source> proxy_source(const LinearProxy& proxy);

/// Those that no other beats in latency and accuracy at once, by latency. Of equal ones the first
/// stays.
std::vector<ParetoDesign> drop_dominated(std::vector<ParetoDesign> designs);

}  // namespace fleetfit::transfer
