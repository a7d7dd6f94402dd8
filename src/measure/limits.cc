#include "fleetfit/measure/limits.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "fleetfit/core/file.h"
#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/process_info.h"
#include "measure/kernel_file.h"

namespace fleetfit::measure {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPeriodUs = 100'000;
constexpr std::string_view kPrefix = "fleetfit-";
constexpr std::string_view kFrequencyPrefix = "frequency-";

// --- who made a group ----------------------------------------------------------------------------

std::optional<std::string> start_of(const LimitSystem& system, std::int64_t pid) {
  const auto info = core::process_info(pid, system.proc);
  return info ? std::optional(fmt::to_string(info->start_ticks)) : std::nullopt;
}

// "PID-START", as it stands in the names of groups and files.
std::string this_owner(const LimitSystem& system) {
  return fmt::format("{}-{}", ::getpid(), start_of(system, ::getpid()).value_or("0"));
}

// Of a name whose prefix was taken off: "PID-START" or "PID-START-N". False on names not ours.
bool owner_is_gone(const LimitSystem& system, std::string_view owner) {
  const auto dash = owner.find('-');
  if (dash == std::string_view::npos) return false;
  const auto pid = to_number(owner.substr(0, dash));
  const auto rest = owner.substr(dash + 1);
  const auto start = rest.substr(0, rest.find('-'));
  if (!pid || !to_number(start)) return false;
  return start_of(system, *pid) != std::optional(std::string(start));
}

// --- control groups ------------------------------------------------------------------------------

Status make_folder(const LimitSystem& system, const fs::path& group) {
  if (system.make_group) return system.make_group(group);
  if (::mkdir(group.c_str(), 0755) == 0) return {};
  return fail(ErrorCode::io, fmt::format("cannot create the control group {}: {}", group.string(),
                                         core::system_message(errno)));
}

Status remove_folder(const LimitSystem& system, const fs::path& group) {
  if (system.remove_group) return system.remove_group(group);
  // A process that has just ended keeps its group busy until the kernel has buried it.
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (::rmdir(group.c_str()) == 0 || errno == ENOENT) return {};
    if (errno != EBUSY) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return fail(ErrorCode::io, fmt::format("cannot remove the control group {}: {}", group.string(),
                                         core::system_message(errno)));
}

struct Controller {
  std::string_view name;     // "cpu" or "memory"
  std::string_view v1_file;  // exists in every group of version 1 that has it
};

constexpr Controller kCpu{"cpu", "cpu.cfs_quota_us"};
constexpr Controller kMemory{"memory", "memory.limit_in_bytes"};

bool lists(const fs::path& file, std::string_view controller) {
  const auto words = words_of(find_setting(file).value_or(""));
  return std::ranges::find(words, controller) != words.end();
}

// Version 1 mounts a controller alone or with others: "cpu", "cpu,cpuacct".
std::optional<fs::path> v1_mount(const LimitSystem& system, const Controller& controller) {
  for (const auto& name : names_in(system.cgroup)) {
    std::istringstream parts(name);
    for (std::string part; std::getline(parts, part, ',');) {
      auto mount = system.cgroup / name;
      if (part == controller.name && fs::exists(mount / controller.v1_file)) return mount;
    }
  }
  return std::nullopt;
}

// Alone, or beside version 1 in "unified".
std::optional<fs::path> v2_mount(const LimitSystem& system) {
  for (const auto& mount : {system.cgroup, system.cgroup / "unified"}) {
    if (fs::exists(mount / "cgroup.controllers")) return mount;
  }
  return std::nullopt;
}

// The path after the second colon of the process's line "ID:CONTROLLERS:/PATH"; of version 2 the
// controllers are empty.
std::string group_path_of(const LimitSystem& system, int pid, std::string_view controller) {
  std::istringstream lines(find_setting(system.proc / std::to_string(pid) / "cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names.find(fmt::format(",{},", controller)) == std::string::npos) continue;
    const auto slash = line.find_first_not_of('/', second + 1);
    return slash == std::string::npos ? "" : line.substr(slash);
  }
  return "";
}

// Where the process is now. In a container the path may be that outside of it; then the mount.
fs::path home_of(const LimitSystem& system, const fs::path& mount, int pid,
                 std::string_view controller) {
  const auto home = mount / group_path_of(system, pid, controller);
  return fs::exists(home / "cgroup.procs") ? home.lexically_normal() : mount;
}

struct Group {
  fs::path folder;
  fs::path home;  // where its processes came from
  bool v2 = false;
};

// Version 2 allows no processes beside groups with controllers, so a new group is put beside the
// process's own one, or further up.
Result<fs::path> v2_parent(const fs::path& mount, const fs::path& home,
                           const Controller& controller) {
  if (!lists(mount / "cgroup.controllers", controller.name)) {
    return fail(ErrorCode::unsupported,
                fmt::format("this machine's cgroup v2 has no {0} controller ({1} does not list it)",
                            controller.name, (mount / "cgroup.controllers").string()));
  }
  std::string refused;
  fs::path parent = home == mount ? mount : home.parent_path();
  for (;; parent = parent.parent_path()) {
    const auto control = parent / "cgroup.subtree_control";
    if (lists(control, controller.name)) return parent;
    const auto enabled = write_setting(control, fmt::format("+{}", controller.name));
    if (enabled) return parent;
    refused = enabled.error().message;
    if (parent == mount || parent == parent.root_path()) break;
  }
  return fail(ErrorCode::io, fmt::format("cannot enable the {} controller of cgroup v2: {}",
                                         controller.name, refused));
}

Result<Group> plan_group(const LimitSystem& system, int pid, const Controller& controller,
                         const std::string& name) {
  if (const auto mount = v1_mount(system, controller)) {
    const auto home = home_of(system, *mount, pid, controller.name);
    return Group{home / name, home, false};
  }
  const auto mount = v2_mount(system);
  if (!mount) {
    return fail(ErrorCode::unsupported,
                fmt::format("this machine has no control groups for {}: neither {} nor cgroup v2 "
                            "is mounted in {}",
                            controller.name, controller.name, system.cgroup.string()));
  }
  const auto home = home_of(system, *mount, pid, "");
  FLEETFIT_ASSIGN(const auto parent, v2_parent(*mount, home, controller));
  return Group{parent / name, home, true};
}

Status set_quota(const Group& group, int percent) {
  const std::int64_t quota = kPeriodUs * percent / 100;
  if (group.v2) {
    return write_setting(group.folder / "cpu.max", fmt::format("{} {}", quota, kPeriodUs));
  }
  auto period = write_setting(group.folder / "cpu.cfs_period_us", std::to_string(kPeriodUs));
  if (!period) return period;
  return write_setting(group.folder / "cpu.cfs_quota_us", std::to_string(quota));
}

Status set_memory(const Group& group, std::int64_t bytes) {
  const auto text = std::to_string(bytes);
  if (group.v2) {
    auto limited = write_setting(group.folder / "memory.max", text);
    if (!limited) return limited;
    // Pages in swap would make the limit soft. Kernels without swap have no such file.
    const auto swap = group.folder / "memory.swap.max";
    return fs::exists(swap) ? write_setting(swap, "0") : Status();
  }
  auto limited = write_setting(group.folder / "memory.limit_in_bytes", text);
  if (!limited) return limited;
  const auto swap = group.folder / "memory.memsw.limit_in_bytes";
  return fs::exists(swap) ? write_setting(swap, text) : Status();
}

void move_home(const Group& group) {
  for (const auto& pid : words_of(find_setting(group.folder / "cgroup.procs").value_or(""))) {
    // One that has ended meanwhile cannot be moved, and need not.
    (void)write_setting(group.home / "cgroup.procs", pid);
  }
}

// --- cores ---------------------------------------------------------------------------------------

class CpuSet {
 public:
  explicit CpuSet(const std::vector<int>& cores)
      : cores_(cores.back() + 1), set_(CPU_ALLOC(cores_)) {
    CPU_ZERO_S(bytes(), set_);
    for (const int core : cores) CPU_SET_S(core, bytes(), set_);
  }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;
  ~CpuSet() { CPU_FREE(set_); }

  std::size_t bytes() const { return CPU_ALLOC_SIZE(cores_); }
  const cpu_set_t* get() const { return set_; }

 private:
  int cores_;
  cpu_set_t* set_;
};

// A thread started meanwhile by one that was not bound yet is found in the next turn.
Status bind_to_cores(const LimitSystem& system, int pid, const std::vector<int>& cores) {
  const CpuSet set(cores);
  std::set<std::string> bound;
  for (bool found = true; found;) {
    found = false;
    for (const auto& name : names_in(system.proc / std::to_string(pid) / "task")) {
      const auto thread = to_number(name);
      if (!thread || !bound.insert(name).second) continue;
      found = true;
      if (::sched_setaffinity(static_cast<pid_t>(*thread), set.bytes(), set.get()) == 0) continue;
      if (errno == ESRCH) continue;
      return fail(ErrorCode::io, fmt::format("cannot bind process {} to its cores: {}", pid,
                                             core::system_message(errno)));
    }
  }
  if (!bound.empty()) return {};
  return fail(ErrorCode::not_found, fmt::format("there is no process {}", pid));
}

// --- clock frequency -----------------------------------------------------------------------------

struct ChangedFrequency {
  fs::path file;
  std::string before;
};

Result<std::int64_t> bound_of(const fs::path& folder, std::string_view name) {
  const auto number = read_number(folder / name);
  if (number) return *number;
  return fail(ErrorCode::unsupported,
              fmt::format("this machine does not let us set its clock frequency: {}",
                          number.error().message));
}

Result<ChangedFrequency> plan_frequency(const LimitSystem& system, int core, std::int64_t khz) {
  const auto folder = system.cpu / fmt::format("cpu{}", core) / "cpufreq";
  FLEETFIT_ASSIGN(const auto low, bound_of(folder, "cpuinfo_min_freq"));
  FLEETFIT_ASSIGN(const auto high, bound_of(folder, "cpuinfo_max_freq"));
  if (khz < low || khz > high) {
    return fail(ErrorCode::unsupported,
                fmt::format("core {} runs at {} to {} kHz, not at {}", core, low, high, khz));
  }
  FLEETFIT_ASSIGN(const auto before, read_setting(folder / "scaling_max_freq"));
  return ChangedFrequency{folder / "scaling_max_freq", before};
}

// Cores of one cluster share a file behind links: each is set once.
Result<std::vector<ChangedFrequency>> plan_frequencies(const LimitSystem& system,
                                                       const std::vector<int>& cores,
                                                       std::int64_t khz) {
  std::vector<ChangedFrequency> plan;
  std::set<fs::path> seen;
  for (const int core : cores) {
    FLEETFIT_ASSIGN(auto change, plan_frequency(system, core, khz));
    std::error_code error;
    const auto real = fs::canonical(change.file, error);
    if (!error && !seen.insert(real).second) continue;
    plan.push_back(std::move(change));
  }
  return plan;
}

Status remember(const fs::path& file, const std::vector<ChangedFrequency>& changes) {
  std::string text;
  for (const auto& change : changes) {
    text += fmt::format("{} {}\n", change.before, change.file.string());
  }
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  return core::write_file(file, text);
}

void restore_remembered(const fs::path& file) {
  std::istringstream lines(find_setting(file).value_or(""));
  for (std::string before, path; lines >> before && std::getline(lines >> std::ws, path);) {
    (void)write_setting(path, before);
  }
  std::error_code ignored;
  fs::remove(file, ignored);
}

Result<std::vector<int>> cores_of(const LimitSystem& system, const Device& device) {
  if (!device.cores.empty()) return device.cores;
  FLEETFIT_ASSIGN(const auto online, read_setting(system.cpu / "online"));
  return parse_cores(online);
}

// --- leftovers -----------------------------------------------------------------------------------

int sweep_groups(const LimitSystem& system, const fs::path& folder) {
  int swept = 0;
  for (const auto& name : names_in(folder)) {
    if (!name.starts_with(kPrefix)) continue;
    if (!owner_is_gone(system, std::string_view(name).substr(kPrefix.size()))) continue;
    // What still runs in it outlived the program that limited it.
    move_home({.folder = folder / name, .home = folder});
    if (remove_folder(system, folder / name)) ++swept;
  }
  return swept;
}

// Groups are made in the folder of our own group, or above it.
std::set<fs::path> folders_of_groups(const LimitSystem& system) {
  std::set<fs::path> folders;
  const auto add = [&](const fs::path& mount, std::string_view controller) {
    for (auto folder = home_of(system, mount, ::getpid(), controller);;
         folder = folder.parent_path()) {
      folders.insert(folder);
      if (folder == mount || folder == folder.root_path()) break;
    }
  };
  for (const auto& controller : {kCpu, kMemory}) {
    if (const auto mount = v1_mount(system, controller)) add(*mount, controller.name);
  }
  if (const auto mount = v2_mount(system)) add(*mount, "");
  return folders;
}

}  // namespace

// What was done so far, to be undone in the reverse order.
struct AppliedLimits::State {
  explicit State(const LimitSystem& given) : system(given) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { (void)undo(); }

  Status enter(int pid, const Controller& controller, const std::string& name,
               const std::function<Status(const Group&)>& set);
  Status lower_frequency(const std::vector<int>& cores, std::int64_t khz);
  Status undo();

  LimitSystem system;
  std::vector<Group> groups = {};
  std::optional<fs::path> cpu_group = std::nullopt;
  std::vector<ChangedFrequency> frequencies = {};
  fs::path remembered = {};
};

Status AppliedLimits::State::enter(int pid, const Controller& controller, const std::string& name,
                                   const std::function<Status(const Group&)>& set) {
  FLEETFIT_ASSIGN(const auto planned, plan_group(system, pid, controller, name));
  // Version 2 has one group for all controllers, version 1 one in the tree of each.
  const bool shared = std::ranges::any_of(
      groups, [&](const Group& group) { return group.folder == planned.folder; });
  if (!shared) {
    auto made = make_folder(system, planned.folder);
    if (!made) return made;
    groups.push_back(planned);
  }
  if (controller.name == kCpu.name) cpu_group = planned.folder;
  auto limited = set(planned);
  if (!limited || shared) return limited;
  const auto entered = write_setting(planned.folder / "cgroup.procs", std::to_string(pid));
  if (entered) return {};
  return fail(entered.error().code, fmt::format("cannot put process {} into a control group: {}",
                                                pid, entered.error().message));
}

Status AppliedLimits::State::lower_frequency(const std::vector<int>& cores, std::int64_t khz) {
  FLEETFIT_ASSIGN(auto plan, plan_frequencies(system, cores, khz));
  const auto note = system.state / fmt::format("{}{}", kFrequencyPrefix, this_owner(system));
  auto noted = remember(note, plan);
  if (!noted) return noted;
  remembered = note;
  frequencies = std::move(plan);
  for (const auto& change : frequencies) {
    auto written = write_setting(change.file, std::to_string(khz));
    if (!written) return written;
    FLEETFIT_ASSIGN(const auto now, read_number(change.file));
    if (now != khz) {
      return fail(ErrorCode::unsupported, fmt::format("the kernel set {} to {} kHz, not to {}",
                                                      change.file.string(), now, khz));
    }
  }
  return {};
}

Status AppliedLimits::State::undo() {
  Status status;
  const auto keep_first = [&](Status next) {
    if (status && !next) status = std::move(next);
  };
  for (const auto& group : groups) {
    move_home(group);
    keep_first(remove_folder(system, group.folder));
  }
  groups.clear();
  for (const auto& change : frequencies) keep_first(write_setting(change.file, change.before));
  frequencies.clear();
  std::error_code ignored;
  if (!remembered.empty() && status) fs::remove(remembered, ignored);
  return status;
}

AppliedLimits::AppliedLimits(std::unique_ptr<State> state) : state_(std::move(state)) {}
AppliedLimits::AppliedLimits(AppliedLimits&&) noexcept = default;
AppliedLimits& AppliedLimits::operator=(AppliedLimits&&) noexcept = default;
AppliedLimits::~AppliedLimits() = default;

Status AppliedLimits::release() { return state_ ? state_->undo() : Status(); }

Result<std::int64_t> AppliedLimits::throttled_periods() const {
  if (!state_ || !state_->cpu_group || state_->groups.empty()) return 0;
  const auto path = *state_->cpu_group / "cpu.stat";
  FLEETFIT_ASSIGN(const auto text, read_setting(path));
  const auto words = words_of(text);
  const auto key = std::ranges::find(words, "nr_throttled");
  const auto count =
      key != words.end() && key + 1 != words.end() ? to_number(*(key + 1)) : std::nullopt;
  if (count) return *count;
  return fail(ErrorCode::invalid_input, path.string() + ": has no nr_throttled");
}

Result<AppliedLimits> apply_limits(int pid, const Device& device, const LimitSystem& system) {
  if (!fs::exists(system.proc / std::to_string(pid))) {
    return fail(ErrorCode::not_found, fmt::format("there is no process {}", pid));
  }
  sweep_stale_limits(system);
  auto state = std::make_unique<AppliedLimits::State>(system);
  const auto name = fmt::format("{}{}-{}", kPrefix, this_owner(system), pid);
  const auto& limits = device.limits;
  Status status;
  if (limits.cpu_quota_percent) {
    status = state->enter(pid, kCpu, name, [&](const Group& group) {
      return set_quota(group, *limits.cpu_quota_percent);
    });
  }
  if (status && limits.memory_bytes) {
    status = state->enter(pid, kMemory, name, [&](const Group& group) {
      return set_memory(group, *limits.memory_bytes);
    });
  }
  if (status && limits.frequency_khz) {
    const auto cores = cores_of(system, device);
    status = cores ? state->lower_frequency(*cores, *limits.frequency_khz)
                   : Status(tl::unexpected(cores.error()));
  }
  if (status && !device.cores.empty()) status = bind_to_cores(system, pid, device.cores);
  FLEETFIT_TRY(status);
  return AppliedLimits(std::move(state));
}

int sweep_stale_limits(const LimitSystem& system) {
  int swept = 0;
  for (const auto& folder : folders_of_groups(system)) swept += sweep_groups(system, folder);
  for (const auto& name : names_in(system.state)) {
    if (!name.starts_with(kFrequencyPrefix)) continue;
    if (!owner_is_gone(system, std::string_view(name).substr(kFrequencyPrefix.size()))) continue;
    restore_remembered(system.state / name);
    ++swept;
  }
  return swept;
}

}  // namespace fleetfit::measure
