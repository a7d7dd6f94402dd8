#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/predict/network_parts.h"

namespace fleetfit::predict {

/// Data flow from one node to another.
struct GraphEdge {
  int from = 0;
  int to = 0;

  bool operator==(const GraphEdge&) const = default;
};

/// A graph whose nodes are described by numbers: the kernels of a network, the operators of a cell.
struct NodeGraph {
  std::size_t features = 0;      ///< numbers of a node
  std::vector<double> nodes;     ///< node by node
  std::vector<GraphEdge> edges;  ///< in any order

  std::size_t size() const { return features == 0 ? 0 : nodes.size() / features; }
};

/// Fails with `invalid_input` if there is no node, a node lacks numbers or has others than
/// `features` finite ones, or an edge begins or ends at no node.
Status check_graph(const NodeGraph& graph, std::size_t features);

/// What the dense layers at the end look at.
enum class ReadoutOf : std::uint8_t {
  graph,  ///< the mean and the sum over all nodes
  nodes,  ///< each node, and the results are added up: latency as a sum of costs
};
core::Names names_of(ReadoutOf);

/// A graph network at work: predicts the latency of a whole network from what is known of its nodes
/// and how they are connected. In each of a few layers, a node takes up the sums of what the nodes
/// before it and after it are; dense layers then read out the result. `fleetfit-train
/// graph-network` trains it; docs/formats/graph-network.md describes its JSON, of type
/// "graph-network". Immutable; safe to use from many threads.
class GraphNetwork {
 public:
  struct Parts {
    std::vector<std::string> features;  ///< names of a node's numbers
    InputScaling inputs;
    std::vector<DenseLayer> layers;  ///< of messages: each takes three times the width before it
    ReadoutOf readout_of = ReadoutOf::graph;
    std::vector<DenseLayer>
        readout;           ///< the first takes the width, of a graph twice; the last gives 1
    double sum_scale = 1;  ///< a sum over all nodes is multiplied by it
    OutputScaling output;
  };

  /// Fails with `invalid_input`, naming the part, if sizes do not fit together or a number is not
  /// finite.
  static Result<GraphNetwork> make(Parts parts);

  static Result<GraphNetwork> from_json(const core::JsonView& json);
  static Result<GraphNetwork> read(const std::filesystem::path& file);

  GraphNetwork(GraphNetwork&&) noexcept;
  GraphNetwork& operator=(GraphNetwork&&) noexcept;
  ~GraphNetwork();

  const Parts& parts() const;

  /// Milliseconds. Fails as `check_graph` does.
  Result<double> predict(const NodeGraph& graph) const;

  /// One number for each graph. Fails as `check_graph` does, naming the graph by its index.
  Result<std::vector<double>> predict(std::span<const NodeGraph> graphs) const;

  nlohmann::json to_json() const;

 private:
  struct Packed;
  explicit GraphNetwork(Parts parts);

  Parts parts_;
  std::unique_ptr<const Packed> packed_;
};
core::Fields fields_of(const GraphNetwork::Parts*);

}  // namespace fleetfit::predict
