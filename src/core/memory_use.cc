#include "fleetfit/core/memory_use.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/process_guard.h"

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

}  // namespace fleetfit::core
