#include "fleetfit/core/scratch_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

namespace fleetfit::core {
namespace {

namespace fs = std::filesystem;

// "fleetfit-PID-" and six characters: nothing else among the temporary files is called so.
constexpr std::string_view kPrefix = "fleetfit-";
constexpr std::size_t kRandomCharacters = 6;
constexpr int kMostTries = 10;

bool is_scratch_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const auto digits = name.find('-');
  return digits != 0 && digits != std::string_view::npos &&
         name.find_first_not_of("0123456789") == digits &&
         name.size() - digits - 1 == kRandomCharacters;
}

FileDescriptor open_folder(const fs::path& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool lock(const FileDescriptor& folder, int flags) {
  return folder.is_open() &&
         retry_interrupted([&] { return ::flock(folder.get(), LOCK_EX | flags); }) == 0;
}

bool is_ours_and_there(const FileDescriptor& folder) {
  struct stat about{};
  return ::fstat(folder.get(), &about) == 0 && about.st_uid == ::geteuid() && about.st_nlink > 0;
}

// A folder that another process removes between its creation and its lock is created again.
Result<std::pair<fs::path, FileDescriptor>> create_locked(const fs::path& parent) {
  for (int i = 0; i < kMostTries; ++i) {
    std::string name = (parent / fmt::format("{}{}-XXXXXX", kPrefix, ::getpid())).string();
    if (::mkdtemp(name.data()) == nullptr) break;
    auto folder = open_folder(name);
    const bool locked = lock(folder, 0);
    if (folder.is_open() && (!locked || is_ours_and_there(folder)))
      return std::pair(fs::path(name), std::move(folder));
  }
  return fail(ErrorCode::io, fmt::format("cannot create a folder in {}: {}", parent.string(),
                                         system_message(errno)));
}

void remove_abandoned_in(const fs::path& parent) {
  std::error_code error;
  fs::directory_iterator entries(parent, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const auto& path = entries->path();
    if (!is_scratch_name(path.filename().native())) continue;
    const auto folder = open_folder(path);
    std::error_code ignored;
    if (lock(folder, LOCK_NB) && is_ours_and_there(folder)) fs::remove_all(path, ignored);
  }
}

}  // namespace

void remove_abandoned_scratch_folders() {
  static std::once_flag done;
  std::call_once(done, [] {
    std::error_code error;
    const auto parent = fs::temp_directory_path(error);
    if (!error) remove_abandoned_in(parent);
  });
}

Result<ScratchFolder> ScratchFolder::create() {
  remove_abandoned_scratch_folders();
  std::error_code error;
  const auto parent = fs::temp_directory_path(error);
  if (error) {
    return fail(ErrorCode::io,
                fmt::format("there is no folder for temporary files: {}", error.message()));
  }
  FLEETFIT_ASSIGN(auto created, create_locked(parent));
  return ScratchFolder(std::move(created.first), std::move(created.second));
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

ScratchFolder& ScratchFolder::operator=(ScratchFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace fleetfit::core
