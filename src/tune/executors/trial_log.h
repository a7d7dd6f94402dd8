#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/result.h"

namespace fleetfit::tune {

/// The log of a trial: a file that lines are appended to, up to a limit, and its end for people.
class TrialLog {
 public:
  /// Fails with `io` if the file cannot be written.
  static Result<TrialLog> open(const std::filesystem::path& file, std::size_t max_bytes);

  void add(std::string_view text);

  /// Its last lines as one; empty if nothing was logged.
  std::string end() const;

 private:
  TrialLog(core::FileDescriptor file, std::size_t max_bytes)
      : file_(std::move(file)), room_(max_bytes) {}

  core::FileDescriptor file_;
  std::size_t room_ = 0;
  std::string tail_;
};

}  // namespace fleetfit::tune
