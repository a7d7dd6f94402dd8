#include "app/elastic/adapt_timer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "app/devices/kernel_choices.h"
#include "app/devices/opened_device.h"
#include "fleetfit/core/json.h"

namespace fleetfit::app {
namespace {

/// Only more than one thread would tell this process from one of its own.
bool is_this_process(const measure::Device& device) {
  return is_engine(device.runtime) && device.threads == 1 && device.cores.empty() &&
         !device.limits.any();
}

class InProcess final : public DeviceTimer {
 public:
  InProcess(measure::Device device, KernelChoices choices, adapt::EngineTimerOptions options)
      : device_(std::move(device)),
        choices_(std::move(choices)),
        timer_(adapt::make_engine_timer(std::move(options))) {}

  adapt::NetworkTimer& timer() override { return *timer_; }

  Status keep_kernels() override {
    measure::Measurement found;
    found.kernel_choices = core::format_json_line(timer_->new_choices());
    return choices_.save(device_, found);
  }

 private:
  measure::Device device_;
  KernelChoices choices_;
  std::unique_ptr<adapt::EngineTimer> timer_;
};

class OnRuntime final : public DeviceTimer {
 public:
  OnRuntime(OpenedDevice device, std::unique_ptr<adapt::NetworkTimer> timer)
      : device_(std::move(device)), timer_(std::move(timer)) {}

  adapt::NetworkTimer& timer() override { return *timer_; }
  Status keep_kernels() override { return {}; }

 private:
  OpenedDevice device_;  // outlives the timer, which borrows its runtime
  std::unique_ptr<adapt::NetworkTimer> timer_;
};

}  // namespace

Result<std::unique_ptr<DeviceTimer>> open_timer(Workplace& workplace, std::string_view name,
                                                const adapt::TimingOptions& timing,
                                                std::size_t program_bytes) {
  FLEETFIT_ASSIGN(const auto found, find_device(workplace, name));
  const auto& device = found.device;
  if (device.precision != measure::Precision::fp32)
    return fail(ErrorCode::unsupported,
                fmt::format("device {}: it runs int8, subnets are float", name));
  KernelChoices choices(workplace);
  FLEETFIT_ASSIGN(auto known, choices.known(device));
  if (is_this_process(device)) {
    return std::make_unique<InProcess>(
        device, std::move(choices),
        adapt::EngineTimerOptions{.library = library_of(device.runtime),
                                  .known = parse_choices(known),
                                  .timing = timing,
                                  .program_bytes = program_bytes});
  }
  FLEETFIT_ASSIGN(auto opened, open_device(workplace, name));
  auto load = load_options(opened.device);
  load.known_choices = std::move(known);
  FLEETFIT_ASSIGN(auto timer, adapt::make_runtime_timer(opened.runtime(), std::move(load), timing));
  return std::make_unique<OnRuntime>(std::move(opened), std::move(timer));
}

}  // namespace fleetfit::app
