#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <utility>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/result.h"

namespace fleetfit::tune {

/// Who works in a trial's checkpoint folder: one at a time, and never an earlier attempt after a
/// later one. A file beside the folder is locked by the trial's process and all that it starts, so
/// that the lock is free only when the last of them has gone; the attempt is written in it.
class CheckpointLock {
 public:
  struct Owner {
    std::int64_t attempt = 0;
    std::string worker = {};
  };

  /// Kills what an earlier attempt has left running on this machine. Fails with `cancelled` if a
  /// later attempt has had the folder or `stop` asks for it, with `io` if the file cannot be
  /// written or the folder does not become free in time.
  static Result<CheckpointLock> take(const std::filesystem::path& folder, const Owner& owner,
                                     std::chrono::milliseconds timeout,
                                     const std::stop_token& stop);

  const core::FileDescriptor& descriptor() const { return lock_; }

  /// Says to successors which process group to kill.
  Status record_group(int group);

 private:
  CheckpointLock(core::FileDescriptor lock, std::filesystem::path file, Owner owner)
      : lock_(std::move(lock)), file_(std::move(file)), owner_(std::move(owner)) {}

  // Never unlocked, only closed: others that have it open would lose it, too.
  core::FileDescriptor lock_;
  std::filesystem::path file_;
  Owner owner_;
};

}  // namespace fleetfit::tune
