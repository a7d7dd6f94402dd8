#pragma once

#include <cstdlib>

#include "fleetfit/cost/cost.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/passes.h"

namespace fleetfit::fuzz {

/// A few bytes may ask for a gigabyte of equal weights; writing those out proves nothing and takes
/// long.
inline bool is_small(const graph::Graph& graph) {
  std::size_t bytes = 0;
  for (const auto& tensor : graph.tensors) bytes += tensor.data ? tensor.data->size_bytes() : 0;
  return bytes < 16'000'000;
}

/// Does with a model what `model inspect` and `model convert` do. What was read without an error
/// must be a graph that all of it can rely on.
inline void use_graph(const Result<graph::ImportedModel>& model) {
  if (!model) return;
  auto graph = model->graph;
  if (!graph::validate(graph)) std::abort();
  (void)cost::count_cost(graph);
  (void)cost::peak_activation_memory(graph);
  if (!is_small(graph)) return;
  if (graph::simplify(graph) && !graph::validate(graph)) std::abort();
  if (is_small(graph)) (void)graph::export_onnx(graph);
}

}  // namespace fleetfit::fuzz
