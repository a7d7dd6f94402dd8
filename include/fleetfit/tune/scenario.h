#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/names.h"
#include "fleetfit/core/result.h"

namespace fleetfit::core {
struct Fields;
}

/// How requests reach a deployed network, and how long they wait.
namespace fleetfit::tune {

enum class ScenarioKind : std::uint8_t {
  single,       ///< one stream; the next sample comes when the last is answered
  offline,      ///< all samples are there; only throughput counts
  server,       ///< `samples` at once, every `period_ms`
  multistream,  ///< single samples by a Poisson process
};
core::Names names_of(ScenarioKind);
using core::to_string;

struct Scenario {
  ScenarioKind kind = ScenarioKind::single;
  std::int64_t samples = 32;  ///< of each query; server only
  double period_ms = 100;     ///< between queries; server only
  double rate_hz = 50;        ///< samples per second; multistream only

  bool operator==(const Scenario&) const = default;
};

/// "single", "offline", "server:32@100ms", "multistream:50hz" (units may be left out). The inverse
/// of `describe`. Fails with `invalid_input`, saying what there is.
Result<Scenario> parse_scenario(std::string_view text);
std::string describe(const Scenario& scenario);

/// How the times of single runs differ, as they were measured.
struct RunSpread {
  double mean_ms = 0;
  double p90_ms = 0;
  double p99_ms = 0;

  bool operator==(const RunSpread&) const = default;
};
core::Fields fields_of(const RunSpread*);

/// Time and energy of one run of a batch.
struct BatchCost {
  double latency_ms = 0;  ///< the median
  std::optional<double> energy_mj = std::nullopt;
  std::optional<RunSpread> spread = std::nullopt;  ///< nothing: all runs take `latency_ms`

  double mean_ms() const { return spread ? spread->mean_ms : latency_ms; }
  bool operator==(const BatchCost&) const = default;
};

/// What users of the deployed network see. Response: from the arrival of a sample to its answer;
/// offline, where all samples have arrived long ago, from the start of its run.
struct Response {
  double mean_ms = 0;
  double p95_ms = 0;
  double p99_ms = 0;
  double throughput = 0;                           ///< samples per second that are answered
  double busy = 0;                                 ///< share of the time
  double run_ms = 0;                               ///< mean time of a run
  double run_samples = 0;                          ///< mean number of samples in a run
  std::int64_t samples = 0;                        ///< that were answered
  std::optional<double> energy_mj = std::nullopt;  ///< per sample
  /// More samples come than are answered: what waits grows without end, and the response times are
  /// those of the first part only.
  bool saturated = false;

  /// Samples per second that could be answered if more came: throughput while busy.
  double capacity() const { return busy > 0 ? throughput / busy : 0; }
  bool operator==(const Response&) const = default;
};
core::Fields fields_of(const Response*);

/// How work and rest take turns where samples are waited for.
struct Rhythm {
  double busy_ms = 0;   ///< of runs without a pause between them, in the mean
  double pause_ms = 0;  ///< of waiting for the next sample, in the mean

  bool operator==(const Rhythm&) const = default;
};

/// Nothing where there are no pauses: in single streams, offline, and where more comes than is
/// answered.
std::optional<Rhythm> rhythm_of(const Scenario& scenario, const Response& response);

struct SimulationOptions {
  std::size_t samples = 20'000;  ///< so many are answered, at least
  std::uint64_t seed = 1;
};

/// A discrete-event simulation of one worker that takes up to `batch` waiting samples at a time and
/// never waits for more while it is free (waiting for a fuller batch makes responses longer at
/// every load that is not saturated: docs/inference-tuning.md). `cost` gives the cost of a batch of
/// 1 to `batch` samples.
Response simulate(const Scenario& scenario, std::int64_t batch,
                  const std::function<BatchCost(std::int64_t)>& cost,
                  const SimulationOptions& options = {});

/// Who answers in a real run. Borrows the clock.
struct RealServer {
  const core::Clock& clock;
  /// Runs a batch of so many samples and comes back when it is done.
  std::function<Status(std::int64_t)> execute = {};
  /// Comes back when the clock shows that time; unset: sleeps.
  std::function<void(std::chrono::nanoseconds)> wait_until = {};
  std::function<bool()> stop = {};  ///< looked at between runs; may be unset
};

struct RealRun {
  double seconds = 10;  ///< that samples arrive; those that wait then are answered still
  std::uint64_t seed = 1;
};

/// The same with real runs: arrivals follow the clock. Fails as `execute` does, and with
/// `cancelled` if it was stopped before anything was answered; a run that was stopped later is a
/// shorter one.
Result<Response> serve_for_real(const Scenario& scenario, std::int64_t batch,
                                const RealServer& server, const RealRun& run = {});

}  // namespace fleetfit::tune
