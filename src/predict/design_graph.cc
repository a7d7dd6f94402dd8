#include "predict/design_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "fleetfit/core/random.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/predict/kernel_graph.h"
#include "fleetfit/predict/training_files.h"
#include "predict/conformal.h"
#include "predict/predictor_fields.h"
#include "predict/trainer.h"

namespace fleetfit::predict {
namespace {

constexpr std::size_t kLeastDesigns = 20;
constexpr std::size_t kHeldOutOf = 5;  // one in five is set aside for the interval

/// The operators of a design's network and how they are connected.
Result<NodeGraph> graph_of(const space::Space& space, space::Design design,
                           const cost::KernelRules& rules) {
  FLEETFIT_ASSIGN(const auto network, space.lower(design));
  FLEETFIT_ASSIGN(const auto plan, cost::deduce_kernels(network, rules));
  return kernel_graph(network, plan);
}

/// A kernel for each operator: which ones a device fuses is for the network to learn.
Result<cost::KernelRules> operator_rules() { return cost::KernelRules::builtin("plain"); }

/// Of designs that were held out of training.
struct Errors {
  double mape = 0;
  double spread90 = 0;
};

core::Fields fields_of(const Errors*) {
  static constexpr core::Field kAll[] = {core::field<&Errors::mape>("mape").from(0),
                                         core::field<&Errors::spread90>("spread90").from(0)};
  return {.all = kAll};
}

struct Parts {
  Identity identity;
  const space::Space* space;
  cost::KernelRules rules;
  GraphNetwork network;
  Errors errors = {};
};

class GraphDesignPredictor final : public DesignPredictor {
 public:
  explicit GraphDesignPredictor(Parts parts) : parts_(std::move(parts)) {}

  const Identity& identity() const override { return parts_.identity; }
  const space::Space& space() const override { return *parts_.space; }
  std::string_view reads() const override { return "graph"; }
  std::string_view settings() const override { return "graph network"; }
  double mape() const override { return parts_.errors.mape; }
  core::Interval interval90(double ms) const override { return around(ms, parts_.errors.spread90); }

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto graph = graph_of(*parts_.space, designs[i], parts_.rules);
      if (!graph) return core::within(parts_.space->format(designs[i]), graph.error());
      const auto ms = parts_.network.predict(*graph);
      if (!ms) return core::within(parts_.space->format(designs[i]), ms.error());
      out[i] = *ms;
    }
    return {};
  }

  nlohmann::json to_json() const override {
    auto json = document("network-graph", parts_.identity, parts_.errors);
    json["space"] = parts_.space->name();
    json["space_version"] = parts_.space->version();
    json["network"] = parts_.network.to_json();
    return json;
  }

 private:
  Parts parts_;
};

Result<GraphNetwork> train(const GraphSet& set, const DesignTrainOptions& options) {
  FLEETFIT_ASSIGN(const auto folder, core::ScratchFolder::create());
  const auto graphs = folder.path() / "graphs.json";
  const auto network = folder.path() / "network.json";
  FLEETFIT_TRY(write_graph_set(graphs, set));
  const auto seed = core::Random(options.seed).split("graph network").seed();
  std::vector<std::string> arguments{"graph-network",  graphs.string(), "--output",
                                     network.string(), "--seed",        std::to_string(seed),
                                     "--json"};
  if (options.budget_s)
    arguments.insert(arguments.end(), {"--budget-s", fmt::format("{}", *options.budget_s)});
  FLEETFIT_TRY(run_trainer(arguments, options.stop));
  if (!std::filesystem::exists(network))
    return fail(ErrorCode::cancelled, "training was stopped before there was a network");
  return GraphNetwork::read(network);
}

/// Graphs to learn from, and others to see how well that worked.
struct Split {
  GraphSet learned;
  GraphSet held_out;
};

Result<Split> split_designs(const space::Space& space, space::DesignBatch designs,
                            std::span<const double> latency_ms, std::uint64_t seed) {
  FLEETFIT_ASSIGN(const auto rules, operator_rules());
  std::vector<std::size_t> order(designs.size());
  std::iota(order.begin(), order.end(), 0);
  core::Random(seed).split("held out").shuffle(order);
  Split split{.learned = {.features = kernel_graph_features()},
              .held_out = {.features = kernel_graph_features()}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto& set = i % kHeldOutOf == 0 ? split.held_out : split.learned;
    const auto design = designs[order[i]];
    auto graph = graph_of(space, design, rules);
    if (!graph) return core::within(space.format(design), graph.error());
    set.names.push_back(space.format(design));
    set.graphs.push_back(*std::move(graph));
    set.ms.push_back(latency_ms[order[i]]);
  }
  return split;
}

}  // namespace

Result<std::unique_ptr<const DesignPredictor>> train_design_graph(
    const space::Space& space, space::DesignBatch designs, std::span<const double> latency_ms,
    const DesignTrainOptions& options) {
  if (designs.size() < kLeastDesigns) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} designs are too few for a graph network, at least {} needed",
                            designs.size(), kLeastDesigns));
  }
  FLEETFIT_ASSIGN(const auto split, split_designs(space, designs, latency_ms, options.seed));
  FLEETFIT_ASSIGN(auto network, train(split.learned, options));
  FLEETFIT_ASSIGN(const auto predicted, network.predict(split.held_out.graphs));
  return std::make_unique<const GraphDesignPredictor>(
      Parts{.identity = options.identity,
            .space = &space,
            .rules = *operator_rules(),
            .network = std::move(network),
            .errors = {.mape = mape_percent(predicted, split.held_out.ms),
                       .spread90 = conformal_score90(log_errors(predicted, split.held_out.ms))}});
}

Result<std::unique_ptr<const DesignPredictor>> design_graph_from_json(const core::JsonView& json) {
  FLEETFIT_ASSIGN(auto identity, read_identity(json));
  FLEETFIT_ASSIGN(const auto space, read_space(json));
  FLEETFIT_ASSIGN(const auto network_json, json.at("network"));
  FLEETFIT_ASSIGN(auto network, GraphNetwork::from_json(network_json));
  if (network.parts().features != kernel_graph_features())
    return network_json.error("was trained with other features than this program knows");
  FLEETFIT_ASSIGN(const auto errors, core::read<Errors>(json));
  FLEETFIT_ASSIGN(auto rules, operator_rules());
  return std::make_unique<const GraphDesignPredictor>(Parts{.identity = std::move(identity),
                                                            .space = space,
                                                            .rules = std::move(rules),
                                                            .network = std::move(network),
                                                            .errors = errors});
}

}  // namespace fleetfit::predict
