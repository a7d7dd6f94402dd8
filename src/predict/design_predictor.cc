#include "fleetfit/predict/design_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "fleetfit/core/counting.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/plausible.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/version.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/predict/training_files.h"
#include "predict/documents.h"
#include "predict/uncertainty.h"

namespace fleetfit::predict {
namespace {

constexpr std::size_t kBlock = 1024;  // designs that are encoded at once

// What comes of numbers that a file has, and nobody measured.
Status check_predicted(const DesignPredictor& predictor, space::DesignBatch designs,
                       std::span<const double> ms) {
  const auto wrong = std::ranges::find_if_not(ms, core::is_time_ms);
  if (wrong == ms.end()) return {};
  const auto design = designs[static_cast<std::size_t>(wrong - ms.begin())];
  return refuse(fmt::format("design {}: the predictor of {} gives it {:g} ms, which is no time",
                            predictor.space().format(design), predictor.identity().device, *wrong));
}

class EncodedDesignPredictor final : public DesignPredictor {
 public:
  EncodedDesignPredictor(NetworkPredictor predictor, const space::Space& space,
                         std::size_t encoding)
      : predictor_(std::move(predictor)), space_(space), encoding_(encoding) {}

  const Identity& identity() const override { return predictor_.identity(); }
  const space::Space& space() const override { return space_; }
  std::string_view reads() const override { return predictor_.encoding(); }
  std::string_view settings() const override { return predictor_.settings(); }
  double mape() const override { return predictor_.mape(); }
  core::Interval interval90(double ms) const override { return predictor_.interval90(ms); }

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    const auto columns = space_.encodings()[encoding_].features.size();
    std::vector<double> rows(std::min(kBlock, designs.size()) * columns);
    for (std::size_t first = 0; first < designs.size(); first += kBlock) {
      const auto count = std::min(kBlock, designs.size() - first);
      const auto block = std::span(rows).first(count * columns);
      space_.encode(designs.part(first, count), encoding_, block);
      predictor_.price({.values = block, .columns = columns}, out.subspan(first, count));
    }
    return check_predicted(*this, designs, out);
  }

  nlohmann::json to_json() const override {
    auto json = predictor_.to_json();
    json["space_version"] = space_.version();
    return json;
  }

 private:
  NetworkPredictor predictor_;
  const space::Space& space_;
  std::size_t encoding_;
};

Result<NetworkPredictor> train_on_encoding(const space::Space& space, space::DesignBatch designs,
                                           std::span<const double> latency_ms,
                                           const DesignTrainOptions& options, std::size_t encoding,
                                           core::ThreadPool& pool) {
  const auto& chosen = space.encodings()[encoding];
  std::vector<double> rows(designs.size() * chosen.features.size());
  space.encode(designs, encoding, rows);
  return train_network_predictor({.values = rows, .columns = chosen.features.size()}, latency_ms,
                                 {.method = options.method,
                                  .identity = options.identity,
                                  .space = space.name(),
                                  .encoding = chosen.name,
                                  .seed = options.seed},
                                 pool);
}

Result<std::vector<std::size_t>> encodings_to_try(const space::Space& space,
                                                  const std::string& name) {
  if (name == "auto") return core::counting(space.encodings().size());
  const auto found = space.find_encoding(name);
  if (!found) return refuse(found.error().message);
  return std::vector{*found};
}

Result<std::unique_ptr<const DesignPredictor>> train_encoded(const space::Space& space,
                                                             space::DesignBatch designs,
                                                             std::span<const double> latency_ms,
                                                             const DesignTrainOptions& options,
                                                             core::ThreadPool& pool) {
  FLEETFIT_ASSIGN(const auto encodings, encodings_to_try(space, options.encoding));
  std::optional<NetworkPredictor> best;
  std::size_t best_encoding = 0;
  for (const auto encoding : encodings) {
    FLEETFIT_ASSIGN(auto trained,
                    train_on_encoding(space, designs, latency_ms, options, encoding, pool));
    if (best && trained.mape() >= best->mape()) continue;
    best = std::move(trained);
    best_encoding = encoding;
  }
  return std::make_unique<const EncodedDesignPredictor>(*std::move(best), space, best_encoding);
}

Status check_times(const space::Space& space, space::DesignBatch designs,
                   std::span<const double> latency_ms) {
  for (std::size_t i = 0; i < designs.size(); ++i) {
    if (latency_ms[i] > 0 && latency_ms[i] < std::numeric_limits<double>::infinity()) continue;
    return refuse(fmt::format("design {}: {} is no time", space.format(designs[i]), latency_ms[i]));
  }
  return {};
}

Result<std::unique_ptr<const DesignPredictor>> encoded_from_json(const core::JsonView& json) {
  FLEETFIT_ASSIGN(auto predictor, NetworkPredictor::from_json(json));
  FLEETFIT_ASSIGN(const auto space, read_space(json));
  const auto encoding = space->find_encoding(predictor.encoding());
  if (!encoding) return json.at("encoding")->error(encoding.error().message);
  const auto columns = space->encodings()[*encoding].features.size();
  if (predictor.model().features() != columns) {
    return json.at("features")
        ->error(fmt::format("the encoding {} has {} now", predictor.encoding(), columns));
  }
  return std::make_unique<const EncodedDesignPredictor>(std::move(predictor), *space, *encoding);
}

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
      const auto ms =
          graph_of(*parts_.space, designs[i], parts_.rules).and_then([&](const NodeGraph& g) {
            return parts_.network.predict(g);
          });
      if (!ms) return core::within(parts_.space->format(designs[i]), ms.error());
      out[i] = *ms;
    }
    return check_predicted(*this, designs, out);
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
  FLEETFIT_TRY(run_trainer("graph-network", graphs, network,
                           {.seed = seed, .budget_s = options.budget_s, .stop = options.stop}));
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
  auto order = core::counting(designs.size());
  core::Random(seed).split("held out").shuffle(order);
  Split split{.learned = {.features = kernel_graph_features()},
              .held_out = {.features = kernel_graph_features()}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto& set = i % kHeldOutOf == 0 ? split.held_out : split.learned;
    const auto design = designs[order[i]];
    set.names.push_back(space.format(design));
    FLEETFIT_ASSIGN(auto graph, core::within(set.names.back(), graph_of(space, design, rules)));
    set.graphs.push_back(std::move(graph));
    set.ms.push_back(latency_ms[order[i]]);
  }
  return split;
}

Result<std::unique_ptr<const DesignPredictor>> train_design_graph(
    const space::Space& space, space::DesignBatch designs, std::span<const double> latency_ms,
    const DesignTrainOptions& options) {
  if (designs.size() < kLeastDesigns) {
    return refuse(fmt::format("{} designs are too few for a graph network, at least {} needed",
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

/// A document of type "network-graph".
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

// Of a kind that is not known the last, which is "other".
std::size_t index_of_kind(std::string_view kind) {
  const auto kinds = cost::kernel_kinds();
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  return static_cast<std::size_t>(std::min(found, kinds.end() - 1) - kinds.begin());
}

}  // namespace

std::vector<std::string> kernel_graph_features() {
  std::vector<std::string> names;
  for (const auto kind : cost::kernel_kinds()) names.push_back("kind " + std::string(kind));
  const auto& generic = cost::generic_feature_names();
  names.insert(names.end(), generic.begin(), generic.end());
  return names;
}

Result<NodeGraph> kernel_graph(const graph::Graph& graph, const cost::KernelPlan& plan) {
  FLEETFIT_ASSIGN(const auto features, cost::features_of(graph, plan.kernels));
  const std::size_t kinds = cost::kernel_kinds().size();
  const std::size_t generic = cost::generic_feature_names().size();
  NodeGraph result{.features = kinds + generic};
  result.nodes.resize(features.size() * result.features);
  for (std::size_t k = 0; k < features.size(); ++k) {
    double* const node = &result.nodes[k * result.features];
    node[index_of_kind(features[k].kind)] = 1;
    std::copy_n(features[k].values.begin(), generic, node + kinds);
  }
  for (const auto& edge : cost::kernel_edges(graph, plan.kernels))
    result.edges.push_back({.from = edge.from, .to = edge.to});
  return result;
}

Result<std::unique_ptr<const DesignPredictor>> train_design_predictor(
    const space::Space& space, space::DesignBatch designs, std::span<const double> latency_ms,
    const DesignTrainOptions& options, core::ThreadPool& pool) {
  FLEETFIT_TRY(check_times(space, designs, latency_ms));
  if (options.method != DesignMethod::graph)
    return train_encoded(space, designs, latency_ms, options, pool);
  auto with_method = options;
  with_method.identity.method = to_string(options.method);
  with_method.identity.networks = static_cast<int>(designs.size());
  with_method.identity.fleetfit_version = core::version();
  return train_design_graph(space, designs, latency_ms, with_method);
}

Result<std::unique_ptr<const DesignPredictor>> design_predictor_from_json(
    const core::JsonView& json) {
  FLEETFIT_ASSIGN(const auto type, read_document_type(json));
  if (type == "network") return encoded_from_json(json);
  if (type == "network-graph") return design_graph_from_json(json);
  return json.at("type")->error(fmt::format("'{}' is no predictor of designs of a space", type));
}

Result<std::unique_ptr<const DesignPredictor>> read_design_predictor(
    const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  return design_predictor_from_json(core::JsonView(document, file.string()));
}

}  // namespace fleetfit::predict
