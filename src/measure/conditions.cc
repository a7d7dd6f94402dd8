#include "fleetfit/measure/conditions.h"

#include <algorithm>
#include <charconv>

#include "fleetfit/core/fields.h"
#include "measure/kernel_file.h"

namespace fleetfit::measure {
namespace {

namespace fs = std::filesystem;

// Of the line "cpu user nice system idle iowait irq softirq steal guest guest_nice"; what guests
// took is part of user and nice already.
constexpr std::size_t kIdleColumn = 4;
constexpr std::size_t kDiskColumn = 5;
constexpr std::size_t kStealColumn = 8;

std::optional<double> read_load(const fs::path& root) {
  const auto words = words_of(find_setting(root / "proc/loadavg").value_or(""));
  double load = 0;
  if (words.empty()) return std::nullopt;
  const auto& text = words.front();
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), load);
  return error == std::errc() ? std::optional(load) : std::nullopt;
}

void read_ticks(const fs::path& root, SystemState& state) {
  const auto text = find_setting(root / "proc/stat").value_or("");
  const auto words = words_of(text.substr(0, text.find('\n')));
  if (words.size() <= kStealColumn || words[0] != "cpu") return;
  for (std::size_t i = 1; i <= kStealColumn; ++i) {
    state.all_ticks += to_number(words[i]).value_or(0);
  }
  state.steal_ticks = to_number(words[kStealColumn]).value_or(0);
  state.idle_ticks =
      to_number(words[kIdleColumn]).value_or(0) + to_number(words[kDiskColumn]).value_or(0);
}

std::optional<std::int64_t> read_frequency(const fs::path& root) {
  const fs::path cpus = root / "sys/devices/system/cpu";
  std::int64_t sum = 0;
  std::int64_t count = 0;
  for (const auto& name : names_in(cpus)) {
    if (!name.starts_with("cpu") || !to_number(std::string_view(name).substr(3))) continue;
    const auto khz = find_number(cpus / name / "cpufreq/scaling_cur_freq");
    sum += khz.value_or(0);
    count += khz ? 1 : 0;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

}  // namespace

SystemState read_system_state(const fs::path& root) {
  SystemState state{.load = read_load(root), .frequency_khz = read_frequency(root)};
  read_ticks(root, state);
  state.kernel = find_setting(root / "proc/sys/kernel/osrelease").value_or("");
  return state;
}

Conditions conditions_between(const SystemState& before, const SystemState& after) {
  Conditions conditions{.load_before = before.load,
                        .load_after = after.load,
                        .frequency_khz_before = before.frequency_khz,
                        .frequency_khz_after = after.frequency_khz,
                        .kernel = after.kernel};
  const auto all = after.all_ticks - before.all_ticks;
  const auto stolen = after.steal_ticks - before.steal_ticks;
  if (before.all_ticks > 0 && all > 0) {
    conditions.steal_share =
        std::clamp(static_cast<double>(stolen) / static_cast<double>(all), 0.0, 1.0);
  }
  return conditions;
}

core::Fields fields_of(const Conditions*) {
  using core::field;
  static constexpr core::Field kAll[] = {
      field<&Conditions::load_before>("load_before"),
      field<&Conditions::load_after>("load_after"),
      field<&Conditions::frequency_khz_before>("frequency_khz_before"),
      field<&Conditions::frequency_khz_after>("frequency_khz_after"),
      field<&Conditions::steal_share>("steal_share"),
      field<&Conditions::kernel>("kernel").may_be_missing()};
  return {.what = "conditions", .all = kAll};
}

}  // namespace fleetfit::measure
