#pragma once

#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/cost/features.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/predict/graph_network.h"

namespace fleetfit::predict {

/// The names of a node's numbers in `kernel_graph`: one for each kind of kernel, then the features
/// that every kind has. A graph network that was trained with others must not be used.
std::vector<std::string> kernel_graph_features();

/// A network as its kernels and the data flow between them, for a graph network. Fails as
/// `cost::features_of` does.
Result<NodeGraph> kernel_graph(const graph::Graph& graph, const cost::KernelPlan& plan);

}  // namespace fleetfit::predict
