#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/adapt/timers.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/result.h"

namespace fleetfit::app {

/// Times networks on a device of the workplace, in the way in which `fleetfit measure` does.
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  virtual adapt::NetworkTimer& timer() = 0;

  /// Keeps in the store which kernels were found fastest.
  virtual Status keep_kernels() = 0;
};

/// The engine in this process where that is the device, else the device's runtime. The workplace is
/// borrowed. `program_bytes`: about the most for networks that take turns in this process. Fails
/// with `unsupported` for a device of int8, and as opening a device does.
Result<std::unique_ptr<DeviceTimer>> open_timer(
    Workplace& workplace, std::string_view name, const adapt::TimingOptions& timing,
    std::size_t program_bytes = adapt::EngineTimerOptions{}.program_bytes);

struct ProxyTableOptions {
  std::size_t subnets = 20;  ///< to time on the device
  std::uint64_t seed = 1;
};

/// The latency table of one device adapted to another by a few subnets that are timed there: the
/// subnets are a space, and the table is a linear proxy (transfer/adaproxy.h). Fails as the timer
/// does, and with `invalid_input` if there are too few subnets to tell anything.
Result<adapt::LatencyTable> table_from_proxy(const std::vector<elastic::Supernet>& models,
                                             const elastic::SubnetSpace& space,
                                             const adapt::LatencyTable& proxy,
                                             adapt::NetworkTimer& timer,
                                             const ProxyTableOptions& options = {});

}  // namespace fleetfit::app
