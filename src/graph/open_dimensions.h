#pragma once

#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/import.h"

namespace fleetfit::graph {

/// A dimension of a model's input as the file has it.
struct OpenDimension {
  std::int64_t extent = 0;  ///< below 1: left open
  std::string name;         ///< of an open one; may be empty
};

/// Sets the tensor's shape, open dimensions closed as the options say, and its symbols; notes what
/// was assumed. Fails with `invalid_input` on an extent in the options that is not positive, or on
/// an absurd shape.
Status close_dimensions(Tensor& tensor, const std::vector<OpenDimension>& dimensions,
                        const ImportOptions& options, std::vector<AssumedDimension>& assumed);

}  // namespace fleetfit::graph
