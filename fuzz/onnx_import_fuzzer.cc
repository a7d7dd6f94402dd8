#include <cstddef>
#include <cstdint>
#include <span>

#include "fuzz/use_graph.h"

// Tensors in files of their own are looked for in a folder that is never there.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fleetfit::fuzz::use_graph(fleetfit::graph::import_onnx(std::as_bytes(std::span(data, size)),
                                                         "no-such-folder", {.open_extent = 32}));
  return 0;
}
