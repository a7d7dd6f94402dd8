#include "app/study/worker_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>

#include "fleetfit/core/process_info.h"

namespace fleetfit::app {

std::string name_of_this_worker(std::string_view as) {
  return fmt::format("{}@{}:{}", as, core::host_name(), ::getpid());
}

bool has_died_here(std::string_view worker) {
  const auto at = worker.find('@');
  const auto colon = worker.rfind(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon < at) return false;
  if (worker.substr(at + 1, colon - at - 1) != core::host_name()) return false;
  int pid = 0;
  const auto digits = worker.substr(colon + 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  if (parsed.ec != std::errc() || pid <= 0) return false;
  if (::kill(pid, 0) != 0 && errno == ESRCH) return true;
  // One that nobody has collected yet is as dead as any.
  const auto info = core::process_info(pid);
  return info && info->state == 'Z';
}

}  // namespace fleetfit::app
