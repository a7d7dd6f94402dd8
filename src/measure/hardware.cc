#include "fleetfit/measure/hardware.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/measure/device.h"
#include "measure/kernel_file.h"

namespace fleetfit::measure {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::int64_t kHighestCore = 4095;

// Those of x86 and arm for which libraries have kernels of their own.
constexpr std::array<std::string_view, 32> kInstructionSets = {
    "sse4_1",      "sse4_2",   "avx",      "avx2",     "fma",      "f16c",        "avx_vnni",
    "avx512f",     "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16",
    "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "neon",     "asimd",       "asimdhp",
    "asimddp",     "asimdfhm", "fphp",     "i8mm",     "bf16",     "sve",         "sve2",
    "svei8mm",     "svebf16",  "sme",      "atomics"};

// Part numbers of cores designed by Arm (implementer 0x41), from their reference manuals.
constexpr std::array<std::pair<std::string_view, std::string_view>, 26> kArmParts = {{
    {"0xc07", "Cortex-A7"},   {"0xd03", "Cortex-A53"},   {"0xd04", "Cortex-A35"},
    {"0xd05", "Cortex-A55"},  {"0xd07", "Cortex-A57"},   {"0xd08", "Cortex-A72"},
    {"0xd09", "Cortex-A73"},  {"0xd0a", "Cortex-A75"},   {"0xd0b", "Cortex-A76"},
    {"0xd0c", "Neoverse-N1"}, {"0xd0d", "Cortex-A77"},   {"0xd40", "Neoverse-V1"},
    {"0xd41", "Cortex-A78"},  {"0xd44", "Cortex-X1"},    {"0xd46", "Cortex-A510"},
    {"0xd47", "Cortex-A710"}, {"0xd48", "Cortex-X2"},    {"0xd49", "Neoverse-N2"},
    {"0xd4b", "Cortex-A78C"}, {"0xd4d", "Cortex-A715"},  {"0xd4e", "Cortex-X3"},
    {"0xd4f", "Neoverse-V2"}, {"0xd80", "Cortex-A520"},  {"0xd81", "Cortex-A720"},
    {"0xd82", "Cortex-X4"},   {"0xd0e", "Cortex-A76AE"},
}};

using Processor = std::map<std::string, std::string, std::less<>>;

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

// One for each "processor" of cpuinfo; what stands outside of them ("Hardware : …") is dropped.
std::vector<Processor> processors_of(std::string_view cpuinfo) {
  std::vector<Processor> processors;
  while (!cpuinfo.empty()) {
    const auto line = cpuinfo.substr(0, cpuinfo.find('\n'));
    cpuinfo.remove_prefix(std::min(line.size() + 1, cpuinfo.size()));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto key = trimmed(line.substr(0, colon));
    if (key == "processor") processors.emplace_back();
    if (!processors.empty()) processors.back()[key] = trimmed(line.substr(colon + 1));
  }
  return processors;
}

std::string value_or_empty(const Processor& processor, std::string_view key) {
  const auto found = processor.find(key);
  return found == processor.end() ? std::string() : found->second;
}

std::string arm_part(const Processor& processor) {
  const auto implementer = value_or_empty(processor, "CPU implementer");
  const auto part = value_or_empty(processor, "CPU part");
  const auto known = std::ranges::find(kArmParts, part, &decltype(kArmParts)::value_type::first);
  if (implementer == "0x41" && known != kArmParts.end()) return std::string(known->second);
  return part.empty() ? std::string() : fmt::format("{}/{}", implementer, part);
}

std::string model_of(const std::vector<Processor>& processors) {
  std::vector<std::string> parts;
  for (const auto& processor : processors) {
    auto name = value_or_empty(processor, "model name");
    if (!value_or_empty(processor, "CPU part").empty()) name = arm_part(processor);
    if (!name.empty() && std::ranges::find(parts, name) == parts.end()) parts.push_back(name);
  }
  return fmt::format("{}", fmt::join(parts, " + "));
}

// x86 and arm call the line differently.
std::set<std::string> flags_of(const Processor& processor) {
  const auto words =
      words_of(value_or_empty(processor, "flags") + " " + value_or_empty(processor, "Features"));
  return {words.begin(), words.end()};
}

std::vector<std::string> instruction_sets_of(const std::vector<Processor>& processors) {
  std::vector<std::string> sets;
  for (const auto name : kInstructionSets) {
    const auto has = [&](const Processor& p) { return flags_of(p).contains(std::string(name)); };
    if (std::ranges::all_of(processors, has)) sets.emplace_back(name);
  }
  std::ranges::sort(sets);
  return sets;
}

bool is_virtual(const fs::path& root, const std::vector<Processor>& processors) {
  return flags_of(processors.front()).contains("hypervisor") ||
         fs::exists(root / "sys/hypervisor/type") ||
         fs::exists(root / "proc/device-tree/hypervisor") ||
         find_setting(root / "sys/class/dmi/id/sys_vendor") == "QEMU";
}

std::vector<int> online_cores(const fs::path& cpus, std::size_t processors) {
  if (const auto text = find_setting(cpus / "online")) {
    if (auto cores = parse_cores(*text)) return *std::move(cores);
  }
  std::vector<int> cores(processors);
  for (std::size_t i = 0; i < processors; ++i) cores[i] = static_cast<int>(i);
  return cores;
}

fs::path folder_of(const fs::path& cpus, int core) { return cpus / fmt::format("cpu{}", core); }

std::vector<Cluster> clusters_of(const fs::path& cpus, const std::vector<int>& cores) {
  std::map<std::pair<std::int64_t, std::int64_t>, Cluster> clusters;
  for (const int core : cores) {
    const auto folder = folder_of(cpus, core);
    const auto capacity = find_number(folder / "cpu_capacity");
    const auto highest = find_number(folder / "cpufreq/cpuinfo_max_freq");
    auto& cluster = clusters[{capacity.value_or(0), highest.value_or(0)}];
    cluster.cores.push_back(core);
    if (capacity) cluster.capacity = static_cast<int>(*capacity);
    cluster.max_frequency_khz = highest;
    cluster.min_frequency_khz = find_number(folder / "cpufreq/cpuinfo_min_freq");
  }
  std::vector<Cluster> list;
  for (auto& [key, cluster] : clusters) list.push_back(std::move(cluster));
  return list;
}

std::optional<Cache> cache_in(const fs::path& folder) {
  const auto level = find_number(folder / "level");
  const auto size = parse_bytes(find_setting(folder / "size").value_or(""));
  auto cores = parse_cores(find_setting(folder / "shared_cpu_list").value_or(""));
  if (!level || !size || !cores) return std::nullopt;
  return Cache{
      .level = static_cast<int>(*level),
      .type = find_setting(folder / "type").value_or(""),
      .bytes = *size,
      .line_bytes = static_cast<int>(find_number(folder / "coherency_line_size").value_or(0)),
      .cores = *std::move(cores)};
}

std::vector<Cache> caches_of(const fs::path& cpus, const std::vector<int>& cores) {
  std::vector<Cache> caches;
  for (const int core : cores) {
    const auto folder = folder_of(cpus, core) / "cache";
    for (const auto& name : names_in(folder)) {
      if (!name.starts_with("index")) continue;
      auto cache = cache_in(folder / name);
      if (cache && std::ranges::find(caches, *cache) == caches.end()) {
        caches.push_back(*std::move(cache));
      }
    }
  }
  const auto order = [](const Cache& c) { return std::tie(c.level, c.type, c.cores); };
  std::ranges::sort(caches, {}, order);
  return caches;
}

Result<std::int64_t> memory_of(const fs::path& root) {
  const auto path = root / "proc/meminfo";
  FLEETFIT_ASSIGN(const auto text, read_setting(path));
  const auto words = words_of(text);
  const auto total = std::ranges::find(words, "MemTotal:");
  const auto kib =
      total != words.end() && total + 1 != words.end() ? to_number(*(total + 1)) : std::nullopt;
  if (kib) return *kib * 1024;
  return fail(ErrorCode::invalid_input, fmt::format("{}: has no MemTotal", path.string()));
}

std::string this_architecture() {
  utsname names{};
  return ::uname(&names) == 0 ? names.machine : "";
}

}  // namespace

Result<Hardware> read_hardware(const HardwareOptions& options) {
  const auto path = options.root / "proc/cpuinfo";
  FLEETFIT_ASSIGN(const auto text, read_setting(path));
  const auto processors = processors_of(text);
  if (processors.empty()) {
    return fail(ErrorCode::invalid_input, fmt::format("{}: names no processor", path.string()));
  }
  FLEETFIT_ASSIGN(const auto memory, memory_of(options.root));

  const auto cpus = options.root / "sys/devices/system/cpu";
  Hardware hardware;
  hardware.architecture = options.architecture.empty() ? this_architecture() : options.architecture;
  hardware.cpu_model = model_of(processors);
  hardware.cores = online_cores(cpus, processors.size());
  hardware.clusters = clusters_of(cpus, hardware.cores);
  hardware.caches = caches_of(cpus, hardware.cores);
  hardware.instruction_sets = instruction_sets_of(processors);
  hardware.memory_bytes = memory;
  hardware.hypervisor = is_virtual(options.root, processors);
  hardware.kernel = find_setting(options.root / "proc/sys/kernel/osrelease").value_or("");
  return hardware;
}

Json to_json(const Hardware& hardware) {
  Json clusters = Json::array();
  for (const auto& cluster : hardware.clusters) {
    clusters.push_back({{"cores", cluster.cores},
                        {"capacity", core::or_null(cluster.capacity)},
                        {"min_frequency_khz", core::or_null(cluster.min_frequency_khz)},
                        {"max_frequency_khz", core::or_null(cluster.max_frequency_khz)}});
  }
  Json caches = Json::array();
  for (const auto& cache : hardware.caches) {
    caches.push_back({{"level", cache.level},
                      {"type", cache.type},
                      {"bytes", cache.bytes},
                      {"line_bytes", cache.line_bytes},
                      {"cores", cache.cores}});
  }
  return {{"architecture", hardware.architecture},
          {"cpu_model", hardware.cpu_model},
          {"cores", hardware.cores},
          {"clusters", std::move(clusters)},
          {"caches", std::move(caches)},
          {"instruction_sets", hardware.instruction_sets},
          {"memory_bytes", hardware.memory_bytes},
          {"hypervisor", hardware.hypervisor},
          {"kernel", hardware.kernel}};
}

Result<std::vector<int>> parse_cores(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorCode::invalid_input,
                fmt::format("\"{}\" is not a list of cores such as 0,2-3", text));
  };
  std::set<int> cores;
  for (std::string_view rest = text;;) {
    const auto item = rest.substr(0, rest.find(','));
    const auto dash = item.find('-');
    const auto first = to_number(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : to_number(item.substr(dash + 1));
    if (!first || !last || *first < 0 || *first > *last || *last > kHighestCore) return bad();
    for (auto core = *first; core <= *last; ++core) cores.insert(static_cast<int>(core));
    if (item.size() == rest.size()) break;
    rest.remove_prefix(item.size() + 1);
  }
  return std::vector<int>(cores.begin(), cores.end());
}

}  // namespace fleetfit::measure
