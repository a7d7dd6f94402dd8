#include "app/kernel_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "app/runtimes.h"
#include "fleetfit/core/json.h"
#include "fleetfit/engine/program.h"

namespace fleetfit::app {
namespace {

// A request to a runtime has at most a megabyte, and texts grow when they are quoted.
constexpr std::size_t kMostBytes = std::size_t{600} << 10;

/// Whose choices they are: restricted to a library, the engine chooses among fewer kernels.
std::string owner_of(const measure::Device& device) {
  return fmt::format("{}; kernels {}", engine::kernel_identity(), device.runtime);
}

std::map<std::string, std::string> by_key(const std::vector<store::KernelChoiceRecord>& records) {
  std::map<std::string, std::string> choices;
  for (const auto& record : records) choices[record.key] = record.choice;
  return choices;
}

}  // namespace

Result<std::string> known_choices(Workplace& workplace, const measure::Device& device) {
  if (!is_engine(device.runtime)) return "";
  auto records = workplace.store->list_kernel_choices(owner_of(device));
  if (!records) return tl::unexpected(std::move(records.error()));
  std::ranges::stable_sort(*records, std::ranges::greater(), &store::KernelChoiceRecord::measured);
  nlohmann::json choices = nlohmann::json::object();
  std::size_t bytes = 0;
  for (const auto& record : *records) {
    bytes += record.key.size() + record.choice.size();
    if (bytes > kMostBytes) break;
    choices[record.key] = record.choice;
  }
  return choices.empty() ? "" : core::format_json_line(choices);
}

Status save_choices(Workplace& workplace, const measure::Device& device,
                    const measure::Measurement& measurement) {
  if (!is_engine(device.runtime) || device.limits.any() || measurement.kernel_choices.empty())
    return {};
  const auto found = core::parse_json(measurement.kernel_choices, "kernel choices");
  if (!found) return tl::unexpected(found.error());
  const auto owner = owner_of(device);
  const auto records = workplace.store->list_kernel_choices(owner);
  if (!records) return tl::unexpected(records.error());
  const auto known = by_key(*records);
  const auto now = std::chrono::floor<std::chrono::milliseconds>(workplace.clock.date());
  std::vector<store::KernelChoiceRecord> fresh;
  for (const auto& [key, choice] : found->items()) {
    if (!choice.is_string()) continue;
    const auto before = known.find(key);
    if (before != known.end() && before->second == choice.get<std::string>()) continue;
    fresh.push_back({.cpu = owner, .key = key, .choice = choice, .ms = {}, .measured = now});
  }
  return fresh.empty() ? Status() : workplace.store->save_kernel_choices(fresh);
}

}  // namespace fleetfit::app
