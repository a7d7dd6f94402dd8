#include "tune/executors/checkpoint_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <sstream>
#include <thread>

#include "fleetfit/core/process_info.h"

namespace fleetfit::tune {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

tl::unexpected<Error> refused(const std::filesystem::path& file, std::string_view what) {
  return fail(ErrorCode::io,
              fmt::format("{}: {}: {}", file.string(), what, core::system_message(errno)));
}

// Empty if there is no such process.
std::string start_of(int pid) {
  const auto info = core::process_info(pid);
  return info ? fmt::to_string(info->start_ticks) : "";
}

// "ATTEMPT HOST GROUP START WORKER"
struct Content {
  std::int64_t attempt = 0;
  std::string host = "-";
  int group = 0;
  std::string start = "-";
};

Content read_content(int fd) {
  std::array<char, 1024> text{};
  const auto size = ::pread(fd, text.data(), text.size() - 1, 0);
  Content content;
  if (size <= 0) return content;
  std::istringstream fields(std::string(text.data(), static_cast<std::size_t>(size)));
  fields >> content.attempt >> content.host >> content.group >> content.start;
  if (!fields) content.group = 0;
  return content;
}

// In one write, shorter texts filled up with spaces, so that readers never see a part.
bool write_content(int fd, std::string text) {
  text.resize(std::max<std::size_t>(text.size(), 250), ' ');
  text += '\n';
  return ::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

void kill_leftover(const Content& content) {
  if (content.group <= 1 || content.host != core::host_name()) return;
  const std::string start = start_of(content.group);
  // A leader that is gone keeps its id taken as long as others are in the group.
  if (start.empty() || start == content.start) ::kill(-content.group, SIGKILL);
}

}  // namespace

Result<CheckpointLock> CheckpointLock::take(const std::filesystem::path& folder, const Owner& owner,
                                            milliseconds timeout, const std::stop_token& stop) {
  const std::filesystem::path file = folder.string() + ".lock";
  core::FileDescriptor opened(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!opened.is_open()) return refused(file, "cannot be opened");
  const int fd = opened.get();
  CheckpointLock lock(std::move(opened), file, owner);
  const auto deadline = steady_clock::now() + timeout;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return refused(file, "cannot be locked");
    const auto content = read_content(fd);
    if (content.attempt > owner.attempt)
      return fail(ErrorCode::cancelled, fmt::format("{}: a later attempt has it", file.string()));
    kill_leftover(content);
    if (stop.stop_requested())
      return fail(ErrorCode::cancelled, fmt::format("{}: it was cancelled", file.string()));
    if (steady_clock::now() >= deadline)
      return fail(ErrorCode::io,
                  fmt::format("{}: another process still works in the folder", file.string()));
    std::this_thread::sleep_for(milliseconds(5));
  }
  if (read_content(fd).attempt > owner.attempt)
    return fail(ErrorCode::cancelled, fmt::format("{}: a later attempt has had it", file.string()));
  FLEETFIT_TRY(lock.record_group(0));
  return lock;
}

Status CheckpointLock::record_group(int group) {
  const std::string start = group > 0 ? start_of(group) : "";
  if (!write_content(lock_.get(), fmt::format("{} {} {} {} {}", owner_.attempt, core::host_name(),
                                              group, start.empty() ? "-" : start, owner_.worker)))
    return refused(file_, "cannot be written");
  return {};
}

}  // namespace fleetfit::tune
