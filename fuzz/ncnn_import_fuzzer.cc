#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fleetfit/graph/graph.h"
#include "fleetfit/graph/import.h"

// Whatever is read without an error is a graph that other code can rely on.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto model = fleetfit::graph::import_ncnn(text, {.open_extent = 32});
  if (model && !fleetfit::graph::validate(model->graph)) std::abort();
  return 0;
}
