#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/agent/agent.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/version.h"
#include "fleetfit/measure/hardware.h"

namespace fleetfit::agent {

Result<fleet::Registration> describe_this_device(std::string name) {
  if (auto ok = fleet::check_name(name); !ok) return core::within("name", ok.error());
  FLEETFIT_ASSIGN(const auto hardware, measure::read_hardware());
  constexpr double kGibi = 1 << 30;
  const auto line =
      fmt::format("{}, {}, {} {}, {:.1f} GiB", hardware.cpu_model, hardware.architecture,
                  hardware.cores.size(), hardware.cores.size() == 1 ? "core" : "cores",
                  static_cast<double>(hardware.memory_bytes) / kGibi);
  return fleet::Registration{
      .name = std::move(name),
      .version = std::string(core::version()),
      .hardware = line,
      .probe = core::format_json_line({{"hardware", measure::to_json(hardware)}})};
}

}  // namespace fleetfit::agent
