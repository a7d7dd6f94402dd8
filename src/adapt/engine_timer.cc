#include <chrono>
#include <utility>

#include "adapt/run_series.h"
#include "fleetfit/adapt/timers.h"

namespace fleetfit::adapt {
namespace {

// Networks have to come to rest after they were made: caches, and the CPU's clock.
constexpr int kWarmUpRuns = 5;

struct Running {
  engine::Program program;
  RunSeries series = {};
};

Result<double> run_once(engine::Program& program) {
  const auto start = std::chrono::steady_clock::now();
  FLEETFIT_TRY(program.run());
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  return taken.count();
}

Status run_round(Running& running, int runs) {
  std::vector<double> run_ms;
  for (int i = 0; i < runs; ++i) {
    FLEETFIT_ASSIGN(const auto ms, run_once(running.program));
    run_ms.push_back(ms);
  }
  running.series.add_round(run_ms);
  return {};
}

Status run_profiled(Running& running, int runs) {
  running.program.reset_times();
  for (int i = 0; i < runs; ++i) FLEETFIT_TRY(running.program.run_timed());
  std::vector<NodeTime> nodes;
  for (auto& step : running.program.step_times())
    nodes.push_back({.node = std::move(step.name), .ms = step.mean_ms});
  running.series.add_nodes(std::move(nodes));
  return {};
}

class InProcess final : public EngineTimer {
 public:
  explicit InProcess(EngineTimerOptions options) : options_(std::move(options)) {}

  Result<std::vector<NetworkTime>> time_in_turns(std::span<const graph::Graph> networks) override {
    std::vector<NetworkTime> times;
    while (times.size() < networks.size()) {
      FLEETFIT_ASSIGN(auto group, prepare_group(networks.subspan(times.size())));
      FLEETFIT_TRY(run_group(group));
      for (const auto& running : group) times.push_back(running.series.result(options_.timing));
    }
    return times;
  }

  const engine::Choices& new_choices() const override { return found_; }

 private:
  /// As many as fit side by side, at least one.
  Result<std::vector<Running>> prepare_group(std::span<const graph::Graph> networks) {
    std::vector<Running> group;
    std::size_t bytes = 0;
    for (const auto& network : networks) {
      FLEETFIT_ASSIGN(auto program, prepare(network));
      bytes += program.arena_bytes() + program.weight_bytes();
      group.push_back({std::move(program)});
      if (bytes >= options_.program_bytes) break;
    }
    return group;
  }

  Result<engine::Program> prepare(const graph::Graph& network) {
    auto program = engine::Program::prepare(
        network,
        {.threads = options_.threads, .library = options_.library, .known = options_.known});
    if (!program) return program;
    for (const auto& [question, answer] : program->new_choices()) {
      options_.known[question] = answer;
      found_[question] = answer;
    }
    const auto inputs = graph::random_inputs(network, 1);
    for (std::size_t i = 0; i < inputs.size(); ++i) FLEETFIT_TRY(program->set_input(i, inputs[i]));
    return program;
  }

  Status run_group(std::vector<Running>& group) {
    for (auto& running : group)
      for (int i = 0; i < kWarmUpRuns; ++i) FLEETFIT_TRY(run_once(running.program));
    for (int round = 0; round < options_.timing.rounds; ++round) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        auto& running = group[round % 2 == 0 ? i : group.size() - 1 - i];
        const int runs = running.series.runs_per_round(options_.timing);
        FLEETFIT_TRY(run_round(running, runs));
        FLEETFIT_TRY(run_profiled(running, (runs + 3) / 4));
      }
    }
    return {};
  }

  EngineTimerOptions options_;
  engine::Choices found_;
};

}  // namespace

std::unique_ptr<EngineTimer> make_engine_timer(EngineTimerOptions options) {
  return std::make_unique<InProcess>(std::move(options));
}

}  // namespace fleetfit::adapt
