#include "fleetfit/core/scratch_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "fleetfit/core/file_descriptor.h"

namespace fleetfit::core {

Result<ScratchFolder> ScratchFolder::create() {
  std::error_code error;
  const auto parent = std::filesystem::temp_directory_path(error);
  if (error) {
    return fail(ErrorCode::io,
                fmt::format("there is no folder for temporary files: {}", error.message()));
  }
  std::string name = (parent / "fleetfit-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return fail(ErrorCode::io, fmt::format("cannot create a folder in {}: {}", parent.string(),
                                           system_message(errno)));
  }
  return ScratchFolder(name);
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

ScratchFolder& ScratchFolder::operator=(ScratchFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace fleetfit::core
