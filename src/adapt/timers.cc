#include "fleetfit/adapt/timers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapt/run_series.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/graph/export.h"

namespace fleetfit::adapt {
namespace {

// Networks have to come to rest after they were made: caches, and the CPU's clock.
constexpr int kWarmUpRuns = 5;
constexpr int kMostRuns = 10'000;
// Runs that lie beyond a tail for it to be known at all.
constexpr double kRunsBeyond = 10;

double median_of(std::span<const double> values) { return core::median(values).value_or(0); }

// --- the engine in this process ---

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

// --- a runtime ---

class OnRuntime final : public NetworkTimer {
 public:
  OnRuntime(measure::Runtime& runtime, measure::LoadOptions load, const TimingOptions& timing,
            core::ScratchFolder folder)
      : runtime_(runtime), load_(std::move(load)), timing_(timing), folder_(std::move(folder)) {}

  Result<std::vector<NetworkTime>> time_in_turns(std::span<const graph::Graph> networks) override {
    std::vector<RunSeries> series(networks.size());
    for (std::size_t i = 0; i < networks.size(); ++i)
      FLEETFIT_TRY(graph::export_onnx_file(networks[i], file(i)));
    // A runtime holds one network at a time, and loading it takes longer than a round: half of the
    // rounds, each twice as long.
    TimingOptions timing = timing_;
    timing.rounds = (timing.rounds + 1) / 2;
    timing.round_ms *= 2;
    for (int round = 0; round < timing.rounds; ++round) {
      for (std::size_t i = 0; i < networks.size(); ++i) {
        const std::size_t turn = round % 2 == 0 ? i : networks.size() - 1 - i;
        FLEETFIT_TRY(run_round(file(turn), series[turn], timing));
      }
    }
    std::vector<NetworkTime> times;
    for (const auto& of_network : series) times.push_back(of_network.result(timing));
    return times;
  }

 private:
  std::filesystem::path file(std::size_t number) const {
    return folder_.path() / fmt::format("subnet{}.onnx", number);
  }

  Status run_round(const std::filesystem::path& model, RunSeries& series,
                   const TimingOptions& timing) {
    FLEETFIT_ASSIGN(const auto loaded, runtime_.load(model, load_));
    learn(loaded.choices);
    FLEETFIT_ASSIGN(const auto warm, runtime_.run(kWarmUpRuns, false));
    RunSeries trial;
    trial.add_round(warm.ms);
    const int runs = trial.runs_per_round(timing);
    FLEETFIT_ASSIGN(const auto plain, runtime_.run(runs, false));
    series.add_round(plain.ms);
    FLEETFIT_ASSIGN(const auto profiled, runtime_.run((runs + 3) / 4, true));
    std::vector<NodeTime> nodes;
    for (const auto& op : profiled.operators) nodes.push_back({.node = op.name, .ms = op.ms});
    // Branches of a network may be run in another order in each session.
    std::ranges::stable_sort(nodes, {}, &NodeTime::node);
    if (!nodes.empty()) series.add_nodes(std::move(nodes));
    return {};
  }

  /// Adds the kernels that a network uses to those known for all.
  void learn(const std::string& choices) {
    const auto fresh = core::parse_json(choices, "choices");
    if (!fresh || !fresh->is_object()) return;
    auto known = core::parse_json(load_.known_choices, "choices");
    if (known && known->is_object()) {
      known->update(*fresh);
      load_.known_choices = core::format_json_line(*known);
    } else {
      load_.known_choices = choices;
    }
  }

  measure::Runtime& runtime_;
  measure::LoadOptions load_;
  TimingOptions timing_;
  core::ScratchFolder folder_;
};

}  // namespace

int RunSeries::runs_per_round(const TimingOptions& options) const {
  if (!(last_run_ms_ > 0)) return 1;
  const double for_time = options.round_ms / last_run_ms_;
  const double for_tail =
      options.quantile > 0.5 ? kRunsBeyond / (1 - options.quantile) / options.rounds : 1;
  return static_cast<int>(
      std::clamp(std::ceil(std::max(for_time, for_tail)), 1.0, double{kMostRuns}));
}

void RunSeries::add_round(std::span<const double> run_ms) {
  round_medians_.push_back(median_of(run_ms));
  run_ms_.insert(run_ms_.end(), run_ms.begin(), run_ms.end());
  last_run_ms_ = std::max(round_medians_.back(), 1e-3);
}

void RunSeries::add_nodes(std::vector<NodeTime> nodes) {
  if (!node_rounds_.empty() && nodes.size() != node_rounds_.front().size()) return;
  node_rounds_.push_back(std::move(nodes));
}

NetworkTime RunSeries::result(const TimingOptions& options) const {
  NetworkTime time;
  time.ms = options.quantile > 0.5 ? core::quantile(run_ms_, options.quantile).value_or(0)
                                   : median_of(round_medians_);
  if (node_rounds_.empty()) return time;
  time.nodes = node_rounds_.front();
  std::vector<double> rounds(node_rounds_.size());
  for (std::size_t i = 0; i < time.nodes.size(); ++i) {
    std::ranges::transform(node_rounds_, rounds.begin(),
                           [i](const auto& nodes) { return nodes[i].ms; });
    time.nodes[i].ms = median_of(rounds);
  }
  return time;
}

std::unique_ptr<EngineTimer> make_engine_timer(EngineTimerOptions options) {
  return std::make_unique<InProcess>(std::move(options));
}

Result<std::unique_ptr<NetworkTimer>> make_runtime_timer(measure::Runtime& runtime,
                                                         measure::LoadOptions load,
                                                         const TimingOptions& timing) {
  FLEETFIT_ASSIGN(auto folder, core::ScratchFolder::create());
  return std::make_unique<OnRuntime>(runtime, std::move(load), timing, std::move(folder));
}

}  // namespace fleetfit::adapt
