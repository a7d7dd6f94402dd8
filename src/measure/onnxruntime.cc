#include "fleetfit/measure/onnxruntime.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "fleetfit/core/companion.h"

namespace fleetfit::measure {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "onnxruntime";
constexpr const char* kScript = "onnxruntime_runtime.mjs";
constexpr const char* kPackage = "node_modules/onnxruntime-node/package.json";

/// Folders that may hold the runtimes, the first being the best.
std::vector<fs::path> runtime_folders() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  const char* named = std::getenv("FLEETFIT_RUNTIMES");
  if (named != nullptr && *named != '\0') return {named};
  const auto program = core::running_program();
  if (!program) return {};
  const auto folder = program->parent_path();
  return {(folder / "../../runtimes").lexically_normal(),
          (folder / "../lib/fleetfit/runtimes").lexically_normal()};
}

}  // namespace

Result<std::vector<std::string>> onnxruntime_command() {
  std::string tried;
  for (const auto& folder : runtime_folders()) {
    const auto here = folder / kName;
    std::error_code ignored;
    if (fs::exists(here / kScript, ignored)) {
      if (fs::exists(here / kPackage, ignored))
        return std::vector<std::string>{"node", (here / kScript).string()};
      return fail(ErrorCode::not_found,
                  fmt::format("ONNX Runtime itself is missing in {}; 'npm ci --ignore-scripts' in "
                              "that folder installs it",
                              here.string()));
    }
    tried += fmt::format("{}{}", tried.empty() ? "" : " nor in ", here.string());
  }
  return fail(ErrorCode::not_found,
              fmt::format("ONNX Runtime is not installed in {}; tools/install-runtime onnxruntime "
                          "installs it, FLEETFIT_RUNTIMES names another folder of runtimes",
                          tried));
}

}  // namespace fleetfit::measure
