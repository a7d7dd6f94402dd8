#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"

/// How requests reach a deployed network, and how long they wait.
namespace fleetfit::tune {

enum class ScenarioKind : std::uint8_t {
  single,       ///< one stream; the next sample comes when the last is answered
  offline,      ///< all samples are there; only throughput counts
  server,       ///< `samples` at once, every `period_ms`
  multistream,  ///< single samples by a Poisson process
};

std::string_view to_string(ScenarioKind kind);

struct Scenario {
  ScenarioKind kind = ScenarioKind::single;
  std::int64_t samples = 32;  ///< of each query; server only
  double period_ms = 100;     ///< between queries; server only
  double rate_hz = 50;        ///< samples per second; multistream only

  bool operator==(const Scenario&) const = default;
};

/// Time and energy of one run of a batch.
struct BatchCost {
  double latency_ms = 0;
  std::optional<double> energy_mj = std::nullopt;
};

/// What users of the deployed network see. Response: from the arrival of a sample to its answer.
struct Response {
  double mean_ms = 0;
  double p95_ms = 0;
  double p99_ms = 0;
  double throughput = 0;                           ///< samples per second that are answered
  double busy = 0;                                 ///< share of the time
  std::optional<double> energy_mj = std::nullopt;  ///< per sample
  /// More samples come than are answered: what waits grows without end, and the response times are
  /// those of the first part only.
  bool saturated = false;

  bool operator==(const Response&) const = default;
};

struct SimulationOptions {
  std::size_t samples = 20'000;  ///< so many are answered
  std::uint64_t seed = 1;
};

/// A discrete-event simulation of one worker that takes up to `batch` waiting samples at a time and
/// never waits for more while it is free. `cost` gives the cost of a batch of 1 to `batch` samples.
Response simulate(const Scenario& scenario, std::int64_t batch,
                  const std::function<BatchCost(std::int64_t)>& cost,
                  const SimulationOptions& options = {});

/// The same with real runs: `execute` runs a batch and comes back when it is done; arrivals follow
/// the clock. For `seconds`, or until `stop` says so.
Response serve_for_real(const Scenario& scenario, std::int64_t batch, double seconds,
                        const std::function<Status(std::int64_t)>& execute,
                        const std::function<bool()>& stop, std::uint64_t seed = 1);

}  // namespace fleetfit::tune
