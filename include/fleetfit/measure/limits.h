#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/measure/device.h"

/// Makes a weaker device of this machine for one process: fewer cores, a share of CPU time, less
/// memory, a lower clock frequency. CPU time and memory are limited by control groups (version 1
/// or 2, whichever has the controller), which mostly takes root.
namespace fleetfit::measure {

/// Where the kernel's files are. Tests put a folder tree there.
struct LimitSystem {
  std::filesystem::path cgroup = "/sys/fs/cgroup";
  std::filesystem::path cpu = "/sys/devices/system/cpu";
  std::filesystem::path proc = "/proc";
  /// Remembers the frequencies to be restored, should this program be killed.
  std::filesystem::path state = "/run/fleetfit";
  /// Creates and removes a group's folder; in the kernel's tree its files come and go with it.
  std::function<Status(const std::filesystem::path&)> make_group = {};    ///< unset: mkdir
  std::function<Status(const std::filesystem::path&)> remove_group = {};  ///< unset: rmdir
};

/// Limits that hold as long as this object lives. Its destruction removes the groups, moving what
/// still runs in them to where it was, and restores the clock frequency. Belongs to one thread at a
/// time.
class AppliedLimits {
 public:
  AppliedLimits(AppliedLimits&&) noexcept;
  AppliedLimits& operator=(AppliedLimits&&) noexcept;
  ~AppliedLimits();

  /// How often the process was stopped because its CPU time was used up; 0 without a quota.
  Result<std::int64_t> throttled_periods() const;

  /// What the destructor does, but telling what went wrong. Harmless if done already.
  Status release();

 private:
  friend Result<AppliedLimits> apply_limits(int pid, const Device& device,
                                            const LimitSystem& system);
  struct State;
  explicit AppliedLimits(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Limits the process `pid`, with all its threads and those that it starts later, to the device's
/// cores and limits. Applied before the process loads a model; other processes are not touched,
/// except that the clock frequency is that of the cores. Nothing stays applied if it fails:
/// `unsupported` names what this machine lacks, `io` what the kernel refused, `not_found` a
/// process that does not exist. Also sweeps what killed programs left behind.
Result<AppliedLimits> apply_limits(int pid, const Device& device, const LimitSystem& system = {});

/// Removes groups of fleetfit programs that do not run any more and restores frequencies that they
/// lowered. Gives the number of leftovers that it removed; what it may not remove it leaves.
int sweep_stale_limits(const LimitSystem& system = {});

}  // namespace fleetfit::measure
