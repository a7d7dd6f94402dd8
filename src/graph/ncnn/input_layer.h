#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "fleetfit/core/result.h"
#include "graph/ncnn/graph_writer.h"

namespace fleetfit::graph::ncnn {

/// Makes an Input layer an input of the graph. Extents that the file does not say are those of an
/// image: channels as the first convolution wants them, "height" and "width" as the options say.
/// `wanted` is what channels_of_inputs() gave.
Status add_input(GraphWriter& writer, Layer& layer,
                 const std::map<std::string_view, std::int64_t>& wanted);

}  // namespace fleetfit::graph::ncnn
