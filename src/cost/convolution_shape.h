#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cost/rules.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::cost {

/// Extents of a convolution, transposed or not, whatever its layout. One of one dimension has
/// height 1.
struct ConvolutionShape {
  std::int64_t groups = 1;
  std::int64_t input_channels = 0;
  std::int64_t output_channels = 0;
  std::int64_t input_height = 1;
  std::int64_t input_width = 1;
  std::int64_t output_height = 1;
  std::int64_t output_width = 1;
  std::int64_t kernel_height = 1;
  std::int64_t kernel_width = 1;
  std::int64_t stride = 1;    ///< the larger one
  std::int64_t dilation = 1;  ///< the larger one
};

/// Nothing if the node is no convolution or a shape is not known.
std::optional<ConvolutionShape> convolution_shape(const graph::Graph& graph,
                                                  const graph::Node& node);

/// The numbers of a convolution that rules can set bounds to.
std::vector<std::string_view> quantity_names();

/// Whether a node is a convolution of known shapes whose quantity keeps within the bound.
bool is_within(const Bound& bound, const graph::Graph& graph, const graph::Node& node);

}  // namespace fleetfit::cost
