#include "fleetfit/train/predictors.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "fleetfit/core/counting.h"
#include "train/fit.h"
#include "train/torch/fits.h"

namespace fleetfit::train {
namespace {

using predict::ReadoutOf;
using predict::Transform;

struct Settings {
  GraphFitOptions network;
  double rate = 5e-3;
};

std::vector<Settings> draw_all(int trials, const core::Random& random) {
  std::vector<Settings> all;
  all.push_back({.network = {.layers = 3, .width = 64, .decay = 1e-5}, .rate = 2e-3});
  for (int trial = 1; trial < trials; ++trial) {
    auto child = random.split(static_cast<std::uint64_t>(trial));
    Settings settings;
    settings.network.layers = static_cast<int>(child.between(2, 4));
    settings.network.width = one_of(std::array{32, 64, 96}, child);
    settings.network.decay = one_of(std::array{1e-4, 1e-5, 0.0}, child);
    settings.rate = one_of(std::array{5e-3, 2e-3, 5e-4}, child);
    // Both kinds take turns.
    settings.network.readout_of = trial % 2 == 0 ? ReadoutOf::graph : ReadoutOf::nodes;
    all.push_back(settings);
  }
  return all;
}

std::string describe(const Settings& settings) {
  return fmt::format("layers {}, width {}, rate {:g}, decay {:g}, readout of {}",
                     settings.network.layers, settings.network.width, settings.rate,
                     settings.network.decay,
                     settings.network.readout_of == ReadoutOf::graph ? "the graph" : "nodes");
}

std::size_t count_weights(const Settings& settings, std::size_t features) {
  const auto width = static_cast<std::size_t>(settings.network.width);
  const auto layers = static_cast<std::size_t>(settings.network.layers);
  return (3 * features + 3 * width * (layers - 1) + 2 * width + layers + 2) * width + 1;
}

Status check(const GraphTrainingSet& set) {
  if (set.graphs.empty() || set.graphs.size() != set.ms.size()) {
    return refuse(fmt::format("{} graphs and {} times do not fit together", set.graphs.size(),
                              set.ms.size()));
  }
  for (std::size_t i = 0; i < set.graphs.size(); ++i) {
    const auto place = fmt::format("graph {}", i);
    FLEETFIT_TRY(core::within(place, predict::check_graph(set.graphs[i], set.features.size())));
    if (!std::isfinite(set.ms[i]) || set.ms[i] <= 0) {
      return refuse(fmt::format("{}: {} is no positive number", place, set.ms[i]));
    }
  }
  return {};
}

GraphSamples prepare_samples(const GraphTrainingSet& set, std::span<const std::size_t> samples,
                             const predict::InputScaling& inputs,
                             const predict::OutputScaling& output) {
  GraphSamples prepared;
  std::vector<double> ms;
  for (const std::size_t i : samples) {
    const auto& graph = set.graphs[i];
    std::vector<float> nodes(graph.nodes.size());
    for (std::size_t at = 0; at < nodes.size(); at += graph.features) {
      predict::scale_inputs(inputs, std::span(graph.nodes).subspan(at, graph.features),
                            std::span(nodes).subspan(at, graph.features));
    }
    prepared.graphs.push_back({.nodes = std::move(nodes), .edges = graph.edges});
    ms.push_back(set.ms[i]);
  }
  prepared.targets = make_targets(std::move(ms), output);
  return prepared;
}

// The graphs as all candidates take them.
struct Prepared {
  predict::InputScaling inputs;
  GraphFitData data;
};

// Costs of nodes add up, logarithms do not.
Transform output_of(ReadoutOf readout_of) {
  return readout_of == ReadoutOf::graph ? Transform::logarithm : Transform::plain;
}

Prepared prepare(const GraphTrainingSet& set, const Split& split, ReadoutOf readout_of) {
  std::vector<double> nodes;
  std::vector<double> ms;
  for (const std::size_t i : split.training) {
    nodes.insert(nodes.end(), set.graphs[i].nodes.begin(), set.graphs[i].nodes.end());
    ms.push_back(set.ms[i]);
  }
  auto inputs = fit_inputs(nodes, set.features.size(), Transform::logarithm);
  const auto output = fit_output(ms, output_of(readout_of));
  auto training = prepare_samples(set, split.training, inputs, output);
  auto validation = prepare_samples(set, split.validation, inputs, output);
  const std::size_t node_count = nodes.size() / set.features.size();
  return {.inputs = std::move(inputs),
          .data = {.features = set.features.size(),
                   .training = std::move(training),
                   .validation = std::move(validation),
                   .sum_scale =
                       static_cast<double>(split.training.size()) / static_cast<double>(node_count),
                   .output = output}};
}

const Prepared& prepared_for(const Settings& settings, const std::array<Prepared, 2>& prepared) {
  return prepared[settings.network.readout_of == ReadoutOf::graph ? 0 : 1];
}

std::vector<Candidate> make_candidates(const std::vector<Settings>& settings,
                                       const std::array<Prepared, 2>& prepared,
                                       const core::Random& random) {
  std::vector<Candidate> candidates;
  for (const auto& chosen : settings) {
    const auto& data = prepared_for(chosen, prepared).data;
    const auto make = [&data, &chosen, child = random.split(candidates.size())] {
      return make_graph_fit(data, chosen.network, child);
    };
    candidates.push_back(
        {.make = make, .rate = chosen.rate, .weights = count_weights(chosen, data.features)});
  }
  return candidates;
}

}  // namespace

Result<TrainedGraphNetwork> train_graph_network(const GraphTrainingSet& set,
                                                const TrainingOptions& options,
                                                const TrainingContext& context) {
  FLEETFIT_TRY(check(set));
  use_one_thread_per_fit();
  const core::Random random(options.seed);
  auto samples = core::counting(set.graphs.size());
  const auto split = split_samples(samples, random.split("split"));
  const std::array<Prepared, 2> prepared = {prepare(set, split, ReadoutOf::graph),
                                            prepare(set, split, ReadoutOf::nodes)};
  const auto settings = draw_all(options.trials, random.split("settings"));
  const auto candidates = make_candidates(settings, prepared, random.split("fits"));

  std::optional<std::chrono::nanoseconds> end;
  if (options.budget) end = context.clock.now() + *options.budget;
  core::ProgressTask progress(
      context.progress,
      {.name = "graph network", .total = search_steps(candidates.size()), .unit = "trainings"});
  const auto found =
      search(candidates, options, {.clock = context.clock, .end = end, .stop = context.stop},
             context.pool, progress);
  const auto& fit = static_cast<GraphFit&>(found.training->fit());
  const auto& chosen = settings[found.candidate];
  const auto& [inputs, data] = prepared_for(chosen, prepared);
  FLEETFIT_ASSIGN(auto network, predict::GraphNetwork::make(
                                    {.features = {set.features.begin(), set.features.end()},
                                     .inputs = inputs,
                                     .layers = fit.layers(),
                                     .readout_of = chosen.network.readout_of,
                                     .readout = fit.readout(),
                                     .sum_scale = data.sum_scale,
                                     .output = data.output}));
  return TrainedGraphNetwork{.network = std::move(network),
                             .settings = describe(chosen),
                             .validation_percent = found.training->best_percent(),
                             .epochs = found.training->best_epoch(),
                             .ended = found.training->ended()};
}

}  // namespace fleetfit::train
