#include "app/devices/opened_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "fleetfit/core/companion.h"
#include "fleetfit/measure/exec_runtime.h"

namespace fleetfit::app {
namespace {

constexpr std::array<std::string_view, 4> kEngines = {"auto", "onednn", "xnnpack", "reference"};
constexpr std::string_view kExec = "exec:";

Result<std::vector<std::string>> command_of(std::string_view runtime, const Programs& programs) {
  if (is_engine(runtime)) return own_command(programs, {"runtime"});
  if (runtime.starts_with(kExec)) return measure::split_command(runtime.substr(kExec.size()));
  return measure::onnxruntime_command();
}

}  // namespace

Result<std::vector<std::string>> own_command(const Programs& programs,
                                             std::vector<std::string> arguments) {
  auto self = programs.self;
  if (self.empty()) {
    FLEETFIT_ASSIGN(self, core::running_program());
    // A program that was replaced by a newer one while it works goes on with itself.
    std::error_code ignored;
    if (!std::filesystem::exists(self, ignored)) self = "/proc/self/exe";
  }
  arguments.insert(arguments.begin(), self.string());
  return arguments;
}

// OpenMP's threads would otherwise spin between operators until the process is killed by its quota,
// or sleep so soon that waking them costs more than small operators take.
std::vector<std::pair<std::string, std::string>> engine_environment() {
  constexpr const char* kSpin = "GOMP_SPINCOUNT";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  if (std::getenv(kSpin) != nullptr) return {};
  return {{kSpin, "5000"}};
}

bool is_engine(std::string_view runtime) {
  return std::ranges::find(kEngines, runtime) != kEngines.end();
}

Result<OpenedRuntime> open_runtime(const measure::Device& device, const Programs& programs,
                                   const measure::AnswerTimes& timeouts) {
  FLEETFIT_ASSIGN(auto command, command_of(device.runtime, programs));
  OpenedRuntime opened{.limits = std::make_unique<std::optional<measure::AppliedLimits>>()};
  measure::ExecRuntimeOptions options{
      .command = std::move(command), .timeouts = timeouts, .stop = programs.stop};
  if (is_engine(device.runtime)) {
    options.environment = engine_environment();
  } else {
    // What it leaves among the temporary files goes with it, also when it is killed.
    FLEETFIT_ASSIGN(opened.scratch, core::ScratchFolder::create());
    options.environment.emplace_back("TMPDIR", opened.scratch->path().string());
  }
  options.prepare = [limits = opened.limits.get(), running = opened.pid.get(),
                     device](int pid) -> Status {
    *running = pid;
    limits->reset();
    FLEETFIT_ASSIGN(auto applied, measure::apply_limits(pid, device));
    limits->emplace(std::move(applied));
    return {};
  };
  FLEETFIT_ASSIGN(opened.runtime, measure::start_exec_runtime(std::move(options)));
  return opened;
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the lambda borrows, `opened` owns
}

measure::LoadOptions load_options(const measure::Device& device) {
  return {.threads = device.threads,
          .kernels = is_engine(device.runtime) ? device.runtime : "auto"};
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
