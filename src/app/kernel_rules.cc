#include "app/kernel_rules.h"

#include <fmt/format.h>

#include <filesystem>

#include "app/runtimes.h"

namespace fleetfit::app {

Result<cost::KernelRules> rules_named(std::string_view name) {
  const auto colon = name.rfind(':');
  const auto set = name.substr(0, colon);
  auto rules = std::filesystem::path(set).extension() == ".json" ? cost::KernelRules::read(set)
                                                                 : cost::KernelRules::builtin(set);
  if (!rules || colon == std::string_view::npos) return rules;
  return rules->for_target(name.substr(colon + 1));
}

std::string rules_of_runtime(std::string_view runtime) {
  if (is_engine(runtime)) return fmt::format("engine:{}", runtime);
  return runtime == "onnxruntime" ? "onnxruntime" : "";
}

}  // namespace fleetfit::app
