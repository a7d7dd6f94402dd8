#include "fleetfit/core/process_info.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/process_guard.h"
#include "fleetfit/core/file.h"

namespace fleetfit::core {
namespace {

// In all of its threads.
void add_children_of(int pid, std::vector<int>& all) {
  std::error_code error;
  const auto tasks = fmt::format("/proc/{}/task", pid);
  for (auto task = std::filesystem::directory_iterator(tasks, error);
       !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    std::ifstream list(task->path() / "children");
    for (int child = 0; list >> child;) all.push_back(child);
  }
}

// What a guard has is its parent's memory, which would count twice.
bool is_guard(int pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  return std::getline(file, name) && name == kGuardName;
}

std::int64_t resident_bytes(int pid) {
  if (is_guard(pid)) return 0;
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  std::int64_t pages = 0;
  std::int64_t resident = 0;
  if (!(file >> pages >> resident)) return 0;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

// "PID (NAME) STATE …": the name may hold spaces and parentheses.
Result<ProcessInfo> process_info(std::int64_t pid, const std::filesystem::path& proc) {
  const auto file = proc / fmt::to_string(pid) / "stat";
  FLEETFIT_ASSIGN(const auto text, read_file(file));
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  ProcessInfo info;
  std::string other;
  const auto skip = [&](int count) {
    for (int i = 0; i < count; ++i) fields >> other;
  };
  std::int64_t user = 0;
  std::int64_t system = 0;
  fields >> info.state;
  skip(10);
  fields >> user >> system;
  skip(6);
  fields >> info.start_ticks;
  if (!fields)
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: this does not describe a process", file.string()));
  info.cpu_s = static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return info;
}

std::int64_t peak_memory_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  constexpr std::int64_t kKibi = 1024;
  return usage.ru_maxrss * kKibi;
}

std::int64_t memory_bytes_of_children(int pid) {
  std::vector<int> all;
  add_children_of(pid, all);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bytes += resident_bytes(all[i]);
    add_children_of(all[i], all);
  }
  return bytes;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

}  // namespace fleetfit::core
