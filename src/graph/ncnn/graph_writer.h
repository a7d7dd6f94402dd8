#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/graph/import.h"
#include "graph/ncnn/param_text.h"

namespace fleetfit::graph::ncnn {

/// What a blob of the file is in the graph.
///
/// ncnn knows no batch: its blobs are W, H x W, C x H x W or C x D x H x W. Every tensor here has a
/// batch of 1 before that, so that an axis that ncnn counts from the outermost dimension is one
/// more here, and one counted from the end is the same. There is one exception: what comes out of
/// global pooling is one-dimensional in ncnn, but kept as N x C x 1 x 1 while nobody minds.
struct Blob {
  TensorId tensor = kNoTensor;
  int dims = 0;             ///< as ncnn counts them; 0: nobody can tell
  bool one_by_one = false;  ///< of one dimension, but the tensor is N x C x 1 x 1
};

/// Builds the graph layer by layer. The first mistake is kept; until it is asked for, ids are safe
/// to pass on.
class GraphWriter {
 public:
  explicit GraphWriter(const ImportOptions& options) : options_(options) {}

  const ImportOptions& options() const { return options_; }
  Graph& graph() { return graph_; }
  std::vector<AssumedDimension>& assumed() { return assumed_; }
  const Status& status() const { return status_; }

  /// Appends a node with this many outputs and infers their shapes.
  std::vector<TensorId> add(Node node, std::size_t outputs);

  void define(std::string_view name, const Blob& blob, int line);
  const Blob& read(std::string_view name);

  /// A blob that is a result of the network although a layer reads it.
  void mark_output(TensorId id) { extra_outputs_.push_back(id); }

  /// Sets the graph's outputs: what nobody reads, in the order of the file.
  void finish_outputs();

  /// Keeps the memory for the scales of quantized weights in bounds.
  bool reserve_scales(std::int64_t count);

  void keep(ErrorCode code, std::string message);

 private:
  struct Definition {
    Blob blob;
    int line = 0;
    bool is_read = false;
  };

  void infer(const Node& node);

  ImportOptions options_;
  Graph graph_;
  std::vector<AssumedDimension> assumed_;
  std::map<std::string, Definition, std::less<>> blobs_;
  std::vector<std::string> order_;  // names of blobs as the file defines them
  std::vector<TensorId> extra_outputs_;
  std::int64_t scales_ = 0;
  Status status_;
};

}  // namespace fleetfit::graph::ncnn
