#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "fleetfit/graph/graph.h"

/// What is known of operators beside their fields, for those that price, run and rewrite networks.
namespace fleetfit::graph {

/// The products that a node sums up; 0 for one that multiplies nothing. Nothing if there are more
/// than fit into 64 bits. All its shapes have to be known.
std::optional<std::int64_t> multiply_accumulates(const Graph& graph, const Node& node);

/// Positions of the inputs that hold trained weights, if they are constant.
std::vector<std::size_t> trained_inputs(const Node& node);

/// Whether those may as well be factors, bounds and indices that nobody trained.
bool takes_any_factor(const Operator& op);

/// The kind of kernel that runs it, by the names of cost::kernel_kinds. A convolution is a
/// "conv2d", and a product a "fully_connected", whatever their operands.
std::string_view kernel_kind(const Operator& op);

/// How much work it is to compute one element of a function.
enum class Price : std::uint8_t { nothing, cheap, costly };

Price price_of(const Activation& activation);

/// The greater of what an operator is and of what the node applies to its output.
Price price_of(const Node& node);

/// Whether what it makes may be the memory of what it reads, or the other way round.
bool shares_memory(const Operator& op);

/// Whether it multiplies its first input by weights: a convolution, a product.
bool is_layer(const Operator& op);

/// Whether its result is the elements of its first input in their order.
bool only_reshapes(const Operator& op);

/// Whether it is a function of each element, as activations are.
bool is_activation(const Operator& op);

/// The type names of all of those.
std::vector<std::string_view> activation_names();

/// The layout of its images; nothing for an operator that works in any.
std::optional<Layout> layout_of(const Operator& op);

}  // namespace fleetfit::graph
