#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "fleetfit/graph/npy.h"

// What was read can be written, and reads the same again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleetfit::graph;
  const auto value = parse_npy(std::as_bytes(std::span(data, size)), "fuzz");
  if (!value) return 0;
  const auto written = format_npy(*value);
  if (!written) std::abort();
  const auto again = parse_npy(std::as_bytes(std::span(*written)), "again");
  if (!again || again->dtype != value->dtype || again->shape != value->shape ||
      !(again->data == value->data)) {
    std::abort();
  }
  return 0;
}
