#pragma once

#include <cstdlib>

#include "fleetfit/cost/cost.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/passes.h"

namespace fleetfit::fuzz {

/// Does with a model what `model inspect` and `model convert` do. What was read without an error
/// must be a graph that all of it can rely on.
inline void use_graph(const Result<graph::ImportedModel>& model) {
  if (!model) return;
  auto graph = model->graph;
  if (!graph::validate(graph)) std::abort();
  (void)cost::count_cost(graph);
  (void)cost::peak_activation_memory(graph);
  if (graph::simplify(graph) && !graph::validate(graph)) std::abort();
  (void)graph::export_onnx(graph);
}

}  // namespace fleetfit::fuzz
