#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "fleetfit/graph/graph.h"

namespace fleetfit::cost {

/// The numbers of a convolution that rules can set bounds to.
std::vector<std::string_view> quantity_names();
bool is_quantity(std::string_view name);

/// Nothing if the node is no convolution or its shapes are not known.
std::optional<std::int64_t> quantity(std::string_view name, const graph::Graph& graph,
                                     const graph::Node& node);

}  // namespace fleetfit::cost
