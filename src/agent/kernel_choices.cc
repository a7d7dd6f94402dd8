#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/job_place.h"
#include "fleetfit/core/json.h"
#include "fleetfit/store/store.h"

namespace fleetfit::agent {
namespace {

constexpr std::size_t kMostChoices = 20'000;

Result<std::vector<store::KernelChoiceRecord>> read_choices(const core::JsonView& view) {
  FLEETFIT_ASSIGN(const auto owners, view.members());
  std::vector<store::KernelChoiceRecord> records;
  for (const auto& owner : owners) {
    FLEETFIT_ASSIGN(const auto choices, owner.value.members());
    for (const auto& choice : choices) {
      FLEETFIT_ASSIGN(auto kernel, choice.value.as_text());
      records.push_back({.cpu = owner.key, .key = choice.key, .choice = std::move(kernel)});
    }
  }
  return records;
}

}  // namespace

void load_kernel_choices(store::Store& store, const std::filesystem::path& file) {
  const auto json = core::read_json(file);
  if (!json) return;
  const auto records = read_choices(core::JsonView(*json, file.string()));
  if (!records || records->empty()) return;
  static_cast<void>(store.save_kernel_choices(*records));
}

void save_kernel_choices(store::Store& store, const std::filesystem::path& file) {
  const auto owners = store.list_kernel_cpus();
  if (!owners) return;
  nlohmann::json json = nlohmann::json::object();
  std::size_t left = kMostChoices;
  for (const auto& owner : *owners) {
    const auto choices = store.list_kernel_choices(owner);
    if (!choices || choices->size() > left) continue;
    left -= choices->size();
    for (const auto& choice : *choices) json[owner][choice.key] = choice.choice;
  }
  if (!json.empty()) static_cast<void>(core::write_json(file, json));
}

}  // namespace fleetfit::agent
