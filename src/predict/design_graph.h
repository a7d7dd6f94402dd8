#pragma once

#include <memory>
#include <span>

#include "fleetfit/predict/design_predictor.h"

namespace fleetfit::predict {

/// Designs priced by a graph network that reads the operators of the lowered network.
Result<std::unique_ptr<const DesignPredictor>> train_design_graph(
    const space::Space& space, space::DesignBatch designs, std::span<const double> latency_ms,
    const DesignTrainOptions& options);

/// A document of type "network-graph".
Result<std::unique_ptr<const DesignPredictor>> design_graph_from_json(const core::JsonView& json);

}  // namespace fleetfit::predict
