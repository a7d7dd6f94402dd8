#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/adapt/monitor.h"
#include "fleetfit/adapt/pool.h"
#include "fleetfit/adapt/prepared_subnet.h"
#include "fleetfit/adapt/switching.h"
#include "fleetfit/core/clock.h"
#include "fleetfit/core/result.h"

/// Serving requests with the subnet of a pool that fits the moment.
namespace fleetfit::adapt {

enum class ServingEventKind : std::uint8_t {
  started,
  switched,
  nothing_fits,    ///< the search is started again, if there is one
  searched,        ///< a new pool is in use
  search_failed,   ///< `reason` says why
  prepare_failed,  ///< of the subnet `to`
};
core::Names names_of(ServingEventKind);

/// Something that happened while serving (docs/formats/events.md).
struct ServingEvent {
  ServingEventKind kind = ServingEventKind::started;
  double time_s = 0;  ///< since serving began
  std::string from = {};
  std::string to = {};
  double ratio = 1;
  /// From the decision until the next request could be served by the new subnet.
  double switch_us = 0;
  bool prepared = true;  ///< whether the subnet was ready when it was decided for
  std::string reason = {};
};

/// The event as a line of JSON without a line end.
std::string to_json_line(const ServingEvent& event);

struct ServerOptions {
  double budget_ms = 0;
  MonitorOptions monitor = {};
  SwitchOptions switching = {};
  std::size_t memory_bytes = std::size_t{256} << 20;  ///< for subnets that are ready
  /// Told from the thread that serves, which waits meanwhile; not to call the server.
  std::function<void(const ServingEvent&)> on_event = {};
  /// Searches a pool for a budget (that of estimated latencies), in a thread of its own, when no
  /// subnet has fitted for a while. Absent: the quickest subnet goes on.
  std::function<Result<SubnetPool>(double budget_ms, const std::stop_token& stop)> search = {};
};

struct Answer {
  std::optional<std::int64_t> best_class = std::nullopt;  ///< nothing if outputs are no scores
  std::vector<float> scores = {};                         ///< the network's output
  double latency_ms = 0;  ///< of the network alone, without waiting for others
  std::string subnet = {};
};

struct SubnetUse {
  std::string subnet = {};
  std::size_t requests = 0;
  double accuracy = 0;      ///< as the pool says
  double estimated_ms = 0;  ///< as the pool says
  double mean_ms = 0;       ///< of its requests
};
core::Fields fields_of(const SubnetUse*);

/// A time in which the load did not change.
struct LoadPhase {
  double start_s = 0;  ///< since serving began, to a tenth of a second
  double ratio = 1;    ///< actual / estimated latency, the median towards its end
  std::size_t requests = 0;
  std::size_t within_budget = 0;
  std::size_t settled = 0;  ///< requests a second and more after its start
  std::size_t settled_within_budget = 0;
  std::size_t labelled = 0;  ///< of those
  std::size_t right = 0;     ///< of those
  double accuracy = 0;       ///< of those, as the pool says of the subnets that served
  double last_accuracy = 0;  ///< of the subnet at its end, as the pool says
  std::string subnet = {};   ///< at its end
};
core::Fields fields_of(const LoadPhase*);

/// How changes of load were coped with. The start of serving counts as a change: the figures of
/// requests that settled leaves out the first second of each phase.
struct LoadReport {
  std::size_t changes = 0;  ///< after the start
  std::size_t settled = 0;  ///< requests a second and more after the last change
  std::size_t settled_within_budget = 0;
  std::vector<LoadPhase> phases = {};  ///< the last hundred
};
core::Fields fields_of(const LoadReport*);

/// A part of something as a share; nothing if there is no whole.
std::optional<double> share_of(std::size_t part, std::size_t whole);

/// Whether the subnet of the end is as accurate as the one before the load came, by what the pool
/// says; nothing if no load came and went.
std::optional<bool> accuracy_returned(const LoadReport& report);

struct ServingReport {
  std::size_t requests = 0;
  std::size_t within_budget = 0;
  std::size_t switches = 0;
  std::size_t labelled = 0;
  std::size_t right = 0;
  double median_ms = 0;  ///< exact for some ten thousand requests, beyond that of a random sample
  double p95_ms = 0;
  double longest_switch_us = 0;
  std::optional<double> ratio = std::nullopt;  ///< at the end
  bool budget_met = true;                      ///< at the end, by the latency that is watched
  std::string subnet = {};                     ///< in use
  std::size_t prepared_bytes = 0;              ///< the most that subnets held ready took
  std::vector<SubnetUse> subnets = {};
  LoadReport load = {};
};

/// Holds the current subnet ready, watches how long it takes, and switches to another when the
/// budget asks for it. Subnets that may be next are prepared in the background, so that a switch
/// just takes another pointer; while one is not ready yet, the best that is ready serves. Safe to
/// use from many threads: requests are served one after the other.
class SubnetServer {
 public:
  /// Prepares the subnet to start with. Borrows preparer and clock. Fails with `invalid_input` on
  /// an empty pool and on a budget that is no positive number, and as preparing does.
  static Result<std::unique_ptr<SubnetServer>> start(SubnetPool pool, SubnetPreparer& preparer,
                                                     const core::Clock& clock,
                                                     ServerOptions options);
  virtual ~SubnetServer() = default;

  virtual const std::vector<std::int64_t>& input_shape() const = 0;
  virtual const std::vector<std::int64_t>& output_shape() const = 0;

  /// Fails as running does. The label, if it is known, counts for the accuracy.
  virtual Result<Answer> serve(std::span<const float> input,
                               std::optional<std::int64_t> label = std::nullopt) = 0;

  virtual ServingReport report() const = 0;

  /// Waits until what is likely to be next is ready.
  virtual void wait_until_prepared() = 0;
};

}  // namespace fleetfit::adapt
