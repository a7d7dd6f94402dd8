#include "app/devices/kernel_rules.h"

#include <fmt/format.h>

#include <filesystem>

#include "app/devices/runtimes.h"

namespace fleetfit::app {

Result<cost::KernelRules> rules_named(std::string_view name) {
  if (name.empty()) name = "plain";
  const auto colon = name.rfind(':');
  const auto set = name.substr(0, colon);
  auto rules = std::filesystem::path(set).extension() == ".json" ? cost::KernelRules::read(set)
                                                                 : cost::KernelRules::builtin(set);
  if (!rules || colon == std::string_view::npos) return rules;
  return rules->for_target(name.substr(colon + 1));
}

std::string rules_of_device(const measure::Device& device) {
  if (device.runtime == "onnxruntime") return "onnxruntime";
  if (!is_engine(device.runtime)) return "";
  // "auto" is what is best on the device.
  return fmt::format("engine:{}",
                     device.runtime == "auto" && !has_onednn(device) ? "xnnpack" : device.runtime);
}

bool has_onednn(const measure::Device& device) {
  return device.runtime_info.build.find("no onednn") == std::string::npos;
}

}  // namespace fleetfit::app
