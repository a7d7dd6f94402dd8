#include <cstddef>
#include <cstdint>
#include <span>

#include "fuzz/use_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fleetfit::fuzz::use_graph(fleetfit::graph::import_tflite(std::as_bytes(std::span(data, size))));
  return 0;
}
