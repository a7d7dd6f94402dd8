#pragma once

#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "graph/ncnn/params.h"

namespace fleetfit::graph::ncnn {

/// One line of the file. Refers to the text that was read.
struct Layer {
  int line = 0;
  std::string_view type;
  std::string_view name;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  Params params;
};

/// "line 14: layer conv1"
std::string place(const Layer& layer);

/// Splits a text graph into its layers. Fails with `invalid_input`, naming the line, on a wrong
/// magic number, on counts that do not agree with what follows and on numbers that are none.
Result<std::vector<Layer>> parse_param_text(std::string_view text);

}  // namespace fleetfit::graph::ncnn
