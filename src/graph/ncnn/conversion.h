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

/// Weights whose values are drawn at random: uniform, with the variance 2 / fan_in that keeps the
/// size of activations through ReLUs.
struct WeightSpec {
  std::string_view role;  ///< part of the name, and of the seed
  Shape shape;
  std::int64_t fan_in = 1;
  bool is_int8 = false;
  int channel_axis = 0;  ///< of quantized weights: the dimension with one scale for each index
};

/// One layer on its way into the graph.
class Conversion {
 public:
  Conversion(GraphWriter& writer, Layer& layer) : writer_(writer), layer_(layer) {}

  const Layer& layer() const { return layer_; }
  Params& params() { return layer_.params; }
  GraphWriter& writer() { return writer_; }

  // What the layer reads.
  std::size_t input_count() const { return layer_.inputs.size(); }
  std::size_t output_count() const { return layer_.outputs.size(); }
  Blob blob(std::size_t i);       ///< nothing, and a mistake, if there is no such input
  TensorId flat(const Blob& b);   ///< the tensor with one dimension more than the blob
  TensorId image(const Blob& b);  ///< the same, but a blob of one dimension as N x C x 1 x 1
  TensorId flat(std::size_t i) { return flat(blob(i)); }
  TensorId image(std::size_t i) { return image(blob(i)); }

  /// Extents without the batch, outermost first; empty if nobody can tell.
  Shape extents(const Blob& b) const;

  /// An axis as ncnn counts it, here.
  static std::int64_t axis(const Blob& b, std::int64_t ncnn_axis);

  // Constants.
  TensorId weights(const WeightSpec& spec);
  TensorId filled(std::string_view role, const Shape& shape, double center, double spread = 0);
  TensorId ints(std::string_view role, const Ints& values);
  TensorId scalar(std::string_view role, float value);

  /// Appends a node and gives its output. The one without a role is called like the layer.
  TensorId add(Operator op, std::vector<TensorId> inputs, std::string_view role = {});
  std::vector<TensorId> add_many(Operator op, std::vector<TensorId> inputs, std::size_t outputs);

  /// Lets the last node apply an activation.
  void activate_last(const Activation& activation);

  // What the layer makes.
  void output(std::size_t i, TensorId id);      ///< names the tensor like the blob
  void output_one_by_one(TensorId id);          ///< N x C x 1 x 1 that ncnn has in one dimension
  void alias(std::size_t i, const Blob& blob);  ///< the blob is the same as another

  /// Keeps the layer as it stands.
  void unknown(std::string reason, std::map<std::string, Attribute> attributes = {});

  void fail(std::string message);
  bool failed() const { return !writer_.status() || !layer_.params.status(); }

 private:
  std::string name_of(std::string_view role) const;
  TensorId add_constant(std::string_view role, DType dtype, const Shape& shape, Recipe recipe);
  void define(std::size_t i, const Blob& blob);
  std::optional<Shape> shape_hint(std::size_t output);

  GraphWriter& writer_;
  Layer& layer_;
  int forms_ = 0;  // nodes that bring inputs to another form, for their names
};

/// What a parameter holds.
Attribute attribute_of(const Param& param);

}  // namespace fleetfit::graph::ncnn
