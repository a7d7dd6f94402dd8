#include <fmt/format.h>

#include <optional>

#include "fleetfit/graph/batch.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::graph {
namespace {

std::optional<std::int64_t> first_extent(const Tensor& tensor) {
  if (!tensor.shape || tensor.shape->empty()) return std::nullopt;
  return tensor.shape->front();
}

/// A shape that a node is given as a constant, with the new batch in front; kNoTensor if it is none
/// or starts with something else than the batch.
TensorId rewritten_shape(Graph& graph, TensorId shape, std::int64_t before, std::int64_t after) {
  auto extents = constant_ints(graph, shape);
  if (!extents || extents->empty() || extents->front() != before) return kNoTensor;
  extents->front() = after;
  Tensor changed = graph.tensor(shape);
  if (changed.dtype == DType::i32) {
    changed.data = TensorData::copy(std::vector<std::int32_t>(extents->begin(), extents->end()));
  } else {
    changed.data = TensorData::copy(*extents);
  }
  changed.name += fmt::format("_batch{}", after);
  return graph.add_tensor(std::move(changed));
}

void rewrite_shapes(Graph& graph, std::int64_t before, std::int64_t after) {
  const auto fixed = static_tensors(graph);
  for (auto& node : graph.nodes) {
    const bool takes_shape =
        std::holds_alternative<Reshape>(node.op) || std::holds_alternative<Expand>(node.op);
    if (!takes_shape || node.inputs.size() < 2 || node.inputs[1] == kNoTensor) continue;
    if (fixed[static_cast<std::size_t>(node.inputs[0])]) continue;
    const auto shape = rewritten_shape(graph, node.inputs[1], before, after);
    if (shape != kNoTensor) node.inputs[1] = shape;
  }
}

tl::unexpected<Error> unchangeable(std::int64_t batch, std::string_view why) {
  return fail(ErrorCode::unsupported,
              fmt::format("it cannot be run with batches of {}: {}", batch, why));
}

Status check_outputs(const Graph& graph, std::int64_t batch) {
  for (const auto id : graph.outputs) {
    if (first_extent(graph.tensor(id)) == batch) continue;
    const auto& shape = graph.tensor(id).shape;
    return unchangeable(batch,
                        fmt::format("its output '{}' is {}", graph.tensor(id).name,
                                    shape ? to_string(*shape) : std::string("of unknown shape")));
  }
  return {};
}

}  // namespace

std::optional<std::int64_t> batch_of(const Graph& graph) {
  if (graph.inputs.empty()) return std::nullopt;
  return first_extent(graph.tensor(graph.inputs.front()));
}

Result<Graph> with_batch(Graph graph, std::int64_t batch) {
  if (batch < 1) return fail(ErrorCode::invalid_input, fmt::format("a batch of {}", batch));
  const auto before = batch_of(graph);
  if (!before) return unchangeable(batch, "its first input has no batch dimension");
  if (*before == batch) return graph;
  for (const auto id : graph.inputs) {
    auto& tensor = graph.tensor(id);
    if (first_extent(tensor) != before) continue;
    tensor.shape->front() = batch;
    if (const auto count = element_count(*tensor.shape); !count)
      return unchangeable(batch, count.error().message);
  }
  rewrite_shapes(graph, *before, batch);
  if (const auto inferred = infer_shapes(graph); !inferred)
    return unchangeable(batch, inferred.error().message);
  FLEETFIT_TRY(check_outputs(graph, batch));
  return graph;
}

}  // namespace fleetfit::graph
