#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/use_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fleetfit::fuzz::use_graph(fleetfit::graph::import_ncnn(text, {.open_extent = 32}));
  return 0;
}
