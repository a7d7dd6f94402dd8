#include "fleetfit/measure/energy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fleetfit::measure {

OpenedMeter open_energy_meter(const core::Clock& clock, const EnergyOptions& options) {
  std::vector<std::string> missing;
  OpenedMeter opened;
  const auto try_one = [&](Result<std::unique_ptr<EnergyMeter>> meter) {
    if (meter) {
      opened.meter = *std::move(meter);
    } else {
      missing.push_back(std::move(meter.error().message));
    }
    return opened.meter != nullptr;
  };
  const bool found = try_one(open_rapl(options)) || try_one(open_hwmon(clock, options)) ||
                     try_one(open_battery(clock, options)) ||
                     (options.model && try_one(open_modelled(*options.model, options)));
  if (!found && !options.model) missing.emplace_back("no power table was given");
  const auto why = fmt::format("{}", fmt::join(missing, "; "));
  if (!found) {
    opened.reason = "no energy: " + why;
  } else {
    opened.reason = fmt::format("energy is {} by {}{}", to_string(opened.meter->source()),
                                opened.meter->name(), why.empty() ? "" : ", because: " + why);
  }
  return opened;
}

}  // namespace fleetfit::measure
