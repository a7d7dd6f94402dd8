#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/graph/graph.h"
#include "graph/ncnn/graph_writer.h"

namespace fleetfit::graph::ncnn {

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

}  // namespace fleetfit::graph::ncnn
