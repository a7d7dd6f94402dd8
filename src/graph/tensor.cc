#include "fleetfit/graph/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fleetfit::graph {
namespace {

constexpr std::size_t kMostDimensions = 16;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

}  // namespace

Result<std::int64_t> element_count(const Shape& shape) {
  if (shape.size() > kMostDimensions) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} dimensions are more than {}", shape.size(), kMostDimensions));
  }
  // An extent of zero would hide absurd ones beside it, so those count as one here.
  std::int64_t bound = 1;
  bool empty = false;
  for (const auto extent : shape) {
    if (extent < 0)
      return fail(ErrorCode::invalid_input, fmt::format("extent {} is negative", extent));
    empty = empty || extent == 0;
    if (__builtin_mul_overflow(bound, extent == 0 ? 1 : extent, &bound) || bound > kMostElements) {
      return fail(ErrorCode::invalid_input, fmt::format("{} is absurdly large", to_string(shape)));
    }
  }
  return empty ? 0 : bound;
}

std::int64_t elements(const Shape& shape) {
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  return count;
}

std::string to_string(const Shape& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace fleetfit::graph
