#include "app/devices/engine_device.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "app/devices/kernel_choices.h"
#include "app/devices/opened_device.h"
#include "app/devices/runtimes.h"
#include "fleetfit/core/json.h"

namespace fleetfit::app {
namespace {

/// Why networks do not run in this process as on the device; "" if they do.
std::string why_not_here(const measure::Device& device) {
  if (!is_engine(device.runtime)) return fmt::format("its runtime is {}", device.runtime);
  if (device.precision != measure::Precision::fp32) return "it runs int8, subnets are float";
  if (device.limits.any() || !device.cores.empty()) return "it has limits or cores of its own";
  return "";
}

}  // namespace

engine::Library library_of(const std::string& runtime) {
  if (runtime == "onednn") return engine::Library::onednn;
  if (runtime == "xnnpack") return engine::Library::xnnpack;
  if (runtime == "reference") return engine::Library::reference;
  return engine::Library::automatic;
}

engine::Choices parse_choices(const std::string& text) {
  engine::Choices choices;
  const auto json = core::parse_json(text, "kernel choices");
  if (!json || !json->is_object()) return choices;
  for (const auto& [question, answer] : json->items())
    if (answer.is_string()) choices[question] = answer.get<std::string>();
  return choices;
}

Result<engine::EngineOptions> engine_options(Workplace& workplace, std::string_view name) {
  FLEETFIT_ASSIGN(const auto found, find_device(workplace, name));
  const auto& device = found.device;
  if (const auto why = why_not_here(device); !why.empty())
    return fail(ErrorCode::unsupported, fmt::format("device {}: {}", name, why));
  FLEETFIT_ASSIGN(const auto known, KernelChoices(workplace).known(device));
  return engine::EngineOptions{.threads = device.threads,
                               .library = library_of(device.runtime),
                               .known = parse_choices(known)};
}

}  // namespace fleetfit::app
