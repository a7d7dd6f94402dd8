#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapt/run_series.h"
#include "fleetfit/adapt/timers.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/graph/export.h"

namespace fleetfit::adapt {
namespace {

constexpr int kWarmUpRuns = 5;

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

Result<std::unique_ptr<NetworkTimer>> make_runtime_timer(measure::Runtime& runtime,
                                                         measure::LoadOptions load,
                                                         const TimingOptions& timing) {
  FLEETFIT_ASSIGN(auto folder, core::ScratchFolder::create());
  return std::make_unique<OnRuntime>(runtime, std::move(load), timing, std::move(folder));
}

}  // namespace fleetfit::adapt
