#pragma once

#include <cstdint>
#include <string>

#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::elastic {

/// Trained numbers of a network.
Result<std::int64_t> parameters_of(const graph::Graph& graph);

/// What a network is made of, whatever the number of channels: equal for blocks of a kind.
std::string kind_of(const graph::Graph& graph);

/// Whether the network is a chain link: one input and one output of one and the same shape.
bool keeps_shape(const graph::Graph& graph);

/// The model cut, and what stood in the way of more.
struct CutModel {
  Supernet supernet = {};
  /// Share of the parameters that blocks had to be allowed for more of them to have inner channels;
  /// 0 if none was held back.
  double helpful_granularity = 0;
};

Result<CutModel> cut_model(const graph::Graph& model, double granularity);

}  // namespace fleetfit::elastic
