#pragma once

#include <filesystem>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/result.h"

namespace fleetfit::core {

/// A new folder among the system's temporary files, removed with all its content at the end. It is
/// locked as long as its process lives, so that what a killed process has left is known as such.
class ScratchFolder {
 public:
  static Result<ScratchFolder> create();

  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&& other) noexcept;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  ScratchFolder(std::filesystem::path path, FileDescriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  FileDescriptor lock_;
};

/// Removes the scratch folders whose process is gone. Looks once in the life of a process.
void remove_abandoned_scratch_folders();

}  // namespace fleetfit::core
