#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "fleetfit/graph/import.h"

/// No bytes may crash the import of TFLite, and what it accepts must be a valid graph.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleetfit::graph;
  const auto model = import_tflite(std::as_bytes(std::span(data, size)));
  if (model && !validate(model->graph)) std::abort();
  return 0;
}
