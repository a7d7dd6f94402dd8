#include "app/study/worker_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>

namespace fleetfit::app {

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string name_of_this_worker(std::string_view as) {
  return fmt::format("{}@{}:{}", as, host_name(), ::getpid());
}

namespace {

// One that nobody has collected yet is as dead as any.
bool is_zombie(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && text.substr(name_end).starts_with(") Z");
}

}  // namespace

bool has_died_here(std::string_view worker) {
  const auto at = worker.find('@');
  const auto colon = worker.rfind(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon < at) return false;
  if (worker.substr(at + 1, colon - at - 1) != host_name()) return false;
  int pid = 0;
  const auto digits = worker.substr(colon + 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  if (parsed.ec != std::errc() || pid <= 0) return false;
  return (::kill(pid, 0) != 0 && errno == ESRCH) || is_zombie(pid);
}

}  // namespace fleetfit::app
