#include "fleetfit/graph/evaluate.h"

namespace fleetfit::graph {

Result<std::vector<Value>> evaluate(const Node& node, std::span<const Value* const>,
                                    std::span<const std::optional<Quantization>>) {
  return fail(ErrorCode::unsupported, describe(node));
}

}  // namespace fleetfit::graph
