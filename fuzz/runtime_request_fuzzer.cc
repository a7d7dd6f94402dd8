#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "fleetfit/measure/exec_runtime.h"

namespace {

using namespace fleetfit;
using namespace fleetfit::measure;

/// Takes everything and does nothing; above all, it gives no outputs, which would be written to
/// files.
class IdleRuntime final : public Runtime {
 public:
  Result<RuntimeInfo> info() override { return RuntimeInfo{"idle", "1", "fuzz"}; }
  Result<LoadedModel> load(const std::filesystem::path& model,
                           const LoadOptions& options) override {
    return LoadedModel{.choices = model.string() + options.kernels + options.known_choices};
  }
  Result<RunTimes> run(int runs, bool per_operator) override {
    RunTimes times{.ms = std::vector<double>(static_cast<std::size_t>(runs % 100), 0.5)};
    if (per_operator) times.operators = {{"a", "b", "c", 1}};
    return times;
  }
  Result<std::vector<NamedValue>> compute(std::span<const NamedValue>) override {
    return std::vector<NamedValue>{};
  }
  Status unload() override { return {}; }
};

}  // namespace

// Whatever the line, there is one line of JSON with the id and the outcome.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  IdleRuntime runtime;
  const auto reply =
      answer_request(runtime, std::string_view(reinterpret_cast<const char*>(data), size));
  const auto read = nlohmann::json::parse(reply, nullptr, /*allow_exceptions=*/false);
  if (reply.find('\n') != std::string::npos || !read.is_object() || !read.contains("id") ||
      !read.at("ok").is_boolean()) {
    std::abort();
  }
  return 0;
}
