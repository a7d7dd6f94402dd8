#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "engine/libraries.h"
#include "fleetfit/engine/program.h"

namespace fleetfit::engine {
namespace {

/// The value of a field of the first processor in the kernel's list; "" if it does not tell.
std::string processor_field(std::string_view key) {
  std::ifstream list("/proc/cpuinfo");
  std::string line;
  while (std::getline(list, line) && !line.empty()) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    const auto value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

std::string processor() {
  std::string text = processor_field("model name");
  for (const std::string_view key :
       {"cpu family", "model\t", "stepping", "CPU implementer", "CPU part"}) {
    if (const std::string value = processor_field(key); !value.empty()) text += " " + value;
  }
  return text.empty() ? "unknown CPU" : text;
}

}  // namespace

std::string kernel_identity() {
  return fmt::format("{}; {}; {}", processor(), onednn_identity(), xnnpack_identity());
}

}  // namespace fleetfit::engine
