#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

/// A graph with what makes and what reads each of its tensors. The graph outlives it and does not
/// change. Questions may be asked about kNoTensor, too: nothing makes it, reads it or knows it.
class Links {
 public:
  explicit Links(const Graph& graph)
      : graph_(&graph),
        maker_(producers(graph)),
        readers_(graph),
        is_static_(static_tensors(graph)),
        is_output_(graph.tensors.size(), false) {
    for (const TensorId id : graph.outputs) is_output_[place(id)] = true;
  }

  const Graph& graph() const { return *graph_; }
  const Node& node(int index) const { return graph_->nodes[place(index)]; }
  const Tensor& tensor(TensorId id) const { return graph_->tensor(id); }

  /// Index of the node that makes a tensor; -1 if none does.
  int maker(TensorId id) const { return id == kNoTensor ? -1 : maker_[place(id)]; }

  /// Indices of the nodes that read a tensor, in order, each once.
  std::span<const int> readers(TensorId id) const {
    return id == kNoTensor ? std::span<const int>() : readers_[place(id)];
  }

  bool is_output(TensorId id) const { return id != kNoTensor && is_output_[place(id)]; }

  /// Whether one node is all that reads a tensor.
  bool read_once(TensorId id) const { return readers(id).size() == 1 && !is_output(id); }

  /// Whether a tensor's value is the same in every run.
  bool is_static(TensorId id) const { return id != kNoTensor && is_static_[place(id)]; }

  /// Whether all that a node makes is, so that nobody has to run it.
  bool is_static(const Node& node) const {
    return std::ranges::all_of(
        node.outputs, [&](TensorId id) { return id == kNoTensor || is_static_[place(id)]; });
  }

 private:
  static std::size_t place(int index) { return static_cast<std::size_t>(index); }

  const Graph* graph_;
  std::vector<int> maker_;  // of each tensor
  Consumers readers_;
  std::vector<bool> is_static_;
  std::vector<bool> is_output_;
};

}  // namespace fleetfit::graph
