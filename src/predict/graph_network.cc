#include "fleetfit/predict/graph_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "predict/documents.h"
#include "predict/packed_layer.h"

namespace fleetfit::predict {
namespace {

using core::JsonView;

constexpr DocumentKind kGraphNetwork{.type = "graph-network", .version = 1};

// Each node's numbers, then the sums of those of its predecessors and of its successors.
std::vector<float> gather(const NodeGraph& graph, std::span<const float> values,
                          std::size_t width) {
  std::vector<float> gathered(graph.size() * 3 * width);
  for (std::size_t node = 0; node < graph.size(); ++node)
    std::copy_n(&values[node * width], width, &gathered[node * 3 * width]);
  const auto add = [&](int to, int from, std::size_t place) {
    const float* source = &values[static_cast<std::size_t>(from) * width];
    float* target = &gathered[(static_cast<std::size_t>(to) * 3 + place) * width];
    for (std::size_t i = 0; i < width; ++i) target[i] += source[i];
  };
  for (const auto& edge : graph.edges) {
    add(edge.to, edge.from, 1);
    add(edge.from, edge.to, 2);
  }
  return gathered;
}

// The mean over all nodes, then their sum times `sum_scale`.
std::vector<float> pooled(std::span<const float> values, std::size_t width, double sum_scale) {
  const std::size_t nodes = values.size() / width;
  std::vector<float> result(2 * width);
  for (std::size_t i = 0; i < width; ++i) {
    double sum = 0;
    for (std::size_t node = 0; node < nodes; ++node)
      sum += static_cast<double>(values[node * width + i]);
    result[i] = static_cast<float>(sum / static_cast<double>(nodes));
    result[width + i] = static_cast<float>(sum * sum_scale);
  }
  return result;
}

Status check_messages(std::span<const DenseLayer> layers, std::size_t features) {
  std::size_t width = features;
  if (layers.empty()) return refuse("layers: there are none");
  for (std::size_t l = 0; l < layers.size(); ++l) {
    FLEETFIT_TRY(
        check_chain(layers.subspan(l, 1), 3 * width, fmt::format("layers from {}: layers", l)));
    width = layers[l].outputs;
  }
  return {};
}

Status check_parts(const GraphNetwork::Parts& parts) {
  FLEETFIT_TRY(check(parts.inputs));
  if (parts.features.size() != parts.inputs.mean.size()) {
    return refuse(fmt::format("features: {} names for {} inputs", parts.features.size(),
                              parts.inputs.mean.size()));
  }
  FLEETFIT_TRY(check_messages(parts.layers, parts.features.size()));
  const std::size_t read =
      (parts.readout_of == ReadoutOf::graph ? 2 : 1) * parts.layers.back().outputs;
  FLEETFIT_TRY(check_chain(parts.readout, read, "readout"));
  if (parts.readout.back().outputs != 1)
    return refuse("readout: the last layer gives more than 1 number");
  if (!std::isfinite(parts.sum_scale)) return refuse("sum_scale: is not finite");
  return check(parts.output);
}

}  // namespace

core::Names names_of(ReadoutOf) {
  static constexpr core::Name kAll[] = {{ReadoutOf::graph, "graph"}, {ReadoutOf::nodes, "nodes"}};
  return {.what = "readout", .all = kAll};
}

core::Fields fields_of(const GraphNetwork::Parts*) {
  using Parts = GraphNetwork::Parts;
  static constexpr core::Field kAll[] = {
      core::other_field("type"), core::other_field("version"),
      FLEETFIT_MEMBERS(Parts, features, inputs, layers, readout_of, readout, sum_scale, output)};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

Status check_graph(const NodeGraph& graph, std::size_t features) {
  if (graph.features != features || features == 0 || graph.nodes.size() % features != 0) {
    return refuse(fmt::format("nodes have {} numbers, expected {}", graph.features, features));
  }
  if (graph.nodes.empty()) return refuse("there is no node");
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!std::isfinite(graph.nodes[i])) {
      return refuse(fmt::format("node {}: a number is {}", i / features, graph.nodes[i]));
    }
  }
  const auto is_node = [&](int node) {
    return node >= 0 && static_cast<std::size_t>(node) < graph.size();
  };
  for (const auto& edge : graph.edges) {
    if (!is_node(edge.from) || !is_node(edge.to)) {
      return refuse(fmt::format("the edge from {} to {} is not between two of {} nodes", edge.from,
                                edge.to, graph.size()));
    }
  }
  return {};
}

struct GraphNetwork::Packed {
  std::vector<PackedLayer> layers;
  std::vector<PackedLayer> readout;
};

GraphNetwork::GraphNetwork(Parts parts)
    : parts_(std::move(parts)),
      packed_(new Packed{.layers = pack(parts_.layers), .readout = pack(parts_.readout)}) {}
GraphNetwork::GraphNetwork(GraphNetwork&&) noexcept = default;
GraphNetwork& GraphNetwork::operator=(GraphNetwork&&) noexcept = default;
GraphNetwork::~GraphNetwork() = default;

Result<GraphNetwork> GraphNetwork::make(Parts parts) {
  FLEETFIT_TRY(check_parts(parts));
  return GraphNetwork(std::move(parts));
}

Result<GraphNetwork> GraphNetwork::from_json(const JsonView& json) {
  FLEETFIT_ASSIGN(auto parts, read_of_kind<Parts>(json, kGraphNetwork));
  return core::within(json.place(), make(std::move(parts)));
}

Result<GraphNetwork> GraphNetwork::read(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  return from_json(JsonView(document, file.string()));
}

const GraphNetwork::Parts& GraphNetwork::parts() const { return parts_; }

Result<double> GraphNetwork::predict(const NodeGraph& graph) const {
  std::size_t width = parts_.features.size();
  FLEETFIT_TRY(check_graph(graph, width));
  std::vector<float> values(graph.nodes.size());
  for (std::size_t node = 0; node < graph.size(); ++node) {
    scale_inputs(parts_.inputs, std::span(graph.nodes).subspan(node * width, width),
                 std::span(values).subspan(node * width, width));
  }
  for (const auto& layer : packed_->layers) {
    const auto gathered = gather(graph, values, width);
    width = layer.outputs();
    values.resize(graph.size() * width);
    layer.apply(gathered, values, graph.size(), Activation::relu);
  }
  if (parts_.readout_of == ReadoutOf::graph) {
    values = pooled(values, width, parts_.sum_scale);
    apply_layers(packed_->readout, 1, values, Activation::none);
    return scaled_output(parts_.output, values[0]);
  }
  apply_layers(packed_->readout, graph.size(), values, Activation::none);
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return scaled_output(parts_.output, static_cast<float>(sum * parts_.sum_scale));
}

Result<std::vector<double>> GraphNetwork::predict(std::span<const NodeGraph> graphs) const {
  std::vector<double> times(graphs.size());
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const auto time = predict(graphs[i]);
    if (!time) return core::within(fmt::format("graph {}", i), time.error());
    times[i] = *time;
  }
  return times;
}

nlohmann::json GraphNetwork::to_json() const { return json_of_kind(parts_, kGraphNetwork); }

}  // namespace fleetfit::predict
