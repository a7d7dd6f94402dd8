#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/predict/samples.h"
#include "fleetfit/store/records.h"

namespace fleetfit::app {

/// The network as a device of this precision runs it: a float one is quantized for int8.
Result<graph::Graph> as_run(graph::Graph graph, measure::Precision precision);

/// A measurement with operators in the form that predictors learn from: the deduced kernels with
/// the times of what ran for them. Time that belongs to none of them counts as overhead; where all
/// of it is more than the network took when it was not profiled, the overhead is less and, if that
/// is not enough, each kernel. Fails with
/// `invalid_input` if the record has no operators or they do not fit the graph.
Result<predict::NetworkSample> sample_of(const graph::Graph& graph, const cost::KernelRules& rules,
                                         const store::MeasurementRecord& record);

}  // namespace fleetfit::app
