#include "elastic/random_weights.h"

#include <cmath>

#include "fleetfit/core/random.h"

namespace fleetfit::elastic {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::TensorId;

class Forgetting {
 public:
  Forgetting(Graph& graph, std::uint64_t seed) : graph_(graph), seed_(seed) {}

  void operator()(const graph::Conv&, const graph::Node& node) { layer(node, 0); }
  void operator()(const graph::ConvTranspose&, const graph::Node& node) { layer(node, 1); }
  void operator()(const graph::Gemm& op, const graph::Node& node) {
    layer(node, op.trans_b ? 0 : 1);
  }
  void operator()(const graph::MatMul& op, const graph::Node& node) {
    if (graph_.tensor(node.inputs[1]).shape->size() == 2) layer(node, op.trans_b ? 0 : 1);
  }
  void operator()(const graph::BatchNorm&, const graph::Node& node) {
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      fill(node.inputs[i], i == 1 || i == 4 ? 1 : 0, 0);
  }
  void operator()(const graph::LayerNorm&, const graph::Node& node) {
    fill(node.inputs[1], 1, 0);
    if (node.inputs.size() > 2) fill(node.inputs[2], 0, 0);
  }
  template <class Op>
  void operator()(const Op&, const graph::Node&) {}

 private:
  /// Draws the weights; all axes but the outputs' are what an output sums over.
  void layer(const graph::Node& node, std::size_t output_axis) {
    const TensorId weights = node.inputs[1];
    if (graph_.tensor(weights).is_constant()) {
      const auto& shape = *graph_.tensor(weights).shape;
      const auto fan_in =
          static_cast<double>(graph::elements(shape)) / static_cast<double>(shape[output_axis]);
      fill(weights, 0, std::sqrt(6 / fan_in));
    }
    if (node.inputs.size() > 2) fill(node.inputs[2], 0, 0);
  }

  void fill(TensorId id, double center, double spread) {
    if (id == kNoTensor) return;
    auto& tensor = graph_.tensor(id);
    if (!tensor.is_constant() || tensor.dtype != graph::DType::f32) return;
    tensor.data = graph::TensorData::generate(
        {.dtype = tensor.dtype,
         .count = static_cast<std::size_t>(graph::elements(*tensor.shape)),
         .center = center,
         .spread = spread,
         .seed = core::mix(seed_, static_cast<std::uint64_t>(id))});
  }

  Graph& graph_;
  std::uint64_t seed_;
};

}  // namespace

void randomize_weights(Graph& graph, std::uint64_t seed) {
  Forgetting forget(graph, seed);
  for (const auto& node : graph.nodes)
    std::visit([&](const auto& op) { forget(op, node); }, node.op);
}

}  // namespace fleetfit::elastic
