#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/space/space.h"
#include "fleetfit/transfer/adaproxy.h"

// Whatever was read prices designs of its space.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleetfit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = core::parse_json(text, "fuzz");
  if (!json) return 0;
  for (const auto& space : space::spaces()) {
    auto adapted = transfer::adapted_from_json(core::JsonView(*json, "fuzz"), *space);
    if (!adapted) continue;
    const auto designs = space::sample_designs(*space, {.count = 3});
    std::vector<double> ms(designs->size());
    const auto source = transfer::adapted_source(*std::move(adapted));
    if (!source->evaluate(*designs, ms)) std::abort();
    for (const double value : ms)
      if (std::isnan(value)) std::abort();
  }
  return 0;
}
