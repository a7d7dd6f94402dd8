#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fleetfit/fit/fleet_file.h"

// A fleet either has a meaning in all of its parts, or is refused with one line that names file and
// line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleetfit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto fleet = fit::parse_fleet(text, "folder/fuzz.yaml");
  if (!fleet) {
    const std::string& message = fleet.error().message;
    if (!message.starts_with("folder/fuzz.yaml:") || message.find('\n') != std::string::npos)
      std::abort();
    return 0;
  }
  if (fleet->devices.empty() || fleet->name.empty() || fleet->confirmations == 0) std::abort();
  for (const auto& device : fleet->devices) {
    const auto& latency = device.budgets.latency;
    if (device.name.empty() || !latency || !(latency->value > 0) || !std::isfinite(latency->value))
      std::abort();
    static_cast<void>(fleet->place(device));
    static_cast<void>(fleet->located_source(device.latency));
  }
  return 0;
}
