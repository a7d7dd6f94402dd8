#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

/// Each pass changes a valid graph in place and says whether it did. Afterwards the graph computes
/// the same, is sorted and valid, its new tensors have type and shape, and its inputs and outputs
/// have the same names in the same order. Shapes are taken as they are: open dimensions are bound
/// before.
namespace fleetfit::graph::rewrite {

Result<bool> fold_constants(Graph& graph);
Result<bool> remove_identities(Graph& graph);
Result<bool> merge_moves(Graph& graph);
Result<bool> recognize_activations(Graph& graph);
Result<bool> recognize_layer_norm(Graph& graph);
Result<bool> recognize_channel_shuffle(Graph& graph);
Result<bool> recognize_global_pool(Graph& graph);
Result<bool> fold_batch_norm(Graph& graph);
Result<bool> fold_affine(Graph& graph);
Result<bool> fuse_activations(Graph& graph);
Result<bool> remove_dead_nodes(Graph& graph);
Result<bool> layout_nchw(Graph& graph);
Result<bool> layout_nhwc(Graph& graph);

}  // namespace fleetfit::graph::rewrite
