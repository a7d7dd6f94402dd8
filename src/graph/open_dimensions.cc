#include "graph/open_dimensions.h"

#include <fmt/format.h>

#include <algorithm>

namespace fleetfit::graph {

Status close_dimensions(Tensor& tensor, const std::vector<OpenDimension>& dimensions,
                        const ImportOptions& options, std::vector<AssumedDimension>& assumed) {
  tensor.shape.emplace();
  tensor.symbols.clear();
  bool any_open = false;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const auto& dimension = dimensions[i];
    if (dimension.extent > 0) {
      tensor.shape->push_back(dimension.extent);
      tensor.symbols.emplace_back();
      continue;
    }
    any_open = true;
    tensor.symbols.push_back(!dimension.name.empty() ? dimension.name
                                                     : fmt::format("{}.{}", tensor.name, i));
    const auto given = options.dimensions.find(tensor.symbols.back());
    if (given != options.dimensions.end()) {
      if (given->second < 1) {
        return fail(ErrorCode::invalid_input,
                    fmt::format("dimension {} cannot be {}", given->first, given->second));
      }
      tensor.shape->push_back(given->second);
      continue;
    }
    tensor.shape->push_back(i == 0 ? options.batch : options.open_extent);
    assumed.push_back({tensor.name, tensor.symbols.back(), tensor.shape->back()});
  }
  if (!any_open) tensor.symbols.clear();
  if (const auto count = element_count(*tensor.shape); !count) {
    return core::within(fmt::format("input '{}'", tensor.name), count.error());
  }
  return {};
}

}  // namespace fleetfit::graph
