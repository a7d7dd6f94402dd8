#include "app/devices/kernel_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "app/devices/opened_device.h"
#include "fleetfit/core/json.h"
#include "fleetfit/engine/program.h"

namespace fleetfit::app {
namespace {

// Some thousand choices: enough for all networks of a session, and read in a few hundredths of a
// second. A request to a runtime has at most a megabyte.
constexpr std::size_t kMostBytes = std::size_t{300} << 10;

/// Whose choices they are: restricted to a library, the engine chooses among fewer kernels.
std::string owner_of(const measure::Device& device) {
  return fmt::format("{}; kernels {}", engine::kernel_identity(), device.runtime);
}

/// Why networks do not run in this process as on the device; "" if they do.
std::string why_not_here(const measure::Device& device) {
  if (!is_engine(device.runtime)) return fmt::format("its runtime is {}", device.runtime);
  if (device.precision != measure::Precision::fp32) return "it runs int8, subnets are float";
  if (device.limits.any() || !device.cores.empty()) return "it has limits or cores of its own";
  return "";
}

}  // namespace

Result<KernelChoices::Answers*> KernelChoices::answers_of(const std::string& owner) {
  if (const auto read = by_owner_.find(owner); read != by_owner_.end()) return &read->second;
  FLEETFIT_ASSIGN(auto records, workplace_.store->list_kernel_choices(owner));
  std::ranges::stable_sort(records, {}, &store::KernelChoiceRecord::measured);
  Answers answers;
  for (const auto& record : records) {
    answers.by_question[record.key] = record.choice;
    answers.questions.push_back(record.key);
  }
  return &by_owner_.emplace(owner, std::move(answers)).first->second;
}

Result<std::string> KernelChoices::known(const measure::Device& device) {
  if (!is_engine(device.runtime)) return "";
  FLEETFIT_ASSIGN(const auto answers, answers_of(owner_of(device)));
  nlohmann::json choices = nlohmann::json::object();
  std::size_t bytes = 0;
  for (const auto& question : std::views::reverse(answers->questions)) {
    const auto& answer = answers->by_question.at(question);
    bytes += question.size() + answer.size();
    if (bytes > kMostBytes) break;
    choices[question] = answer;
  }
  return choices.empty() ? "" : core::format_json_line(choices);
}

Status KernelChoices::save(const measure::Device& device, const measure::Measurement& measurement) {
  if (!is_engine(device.runtime) || device.limits.any() || measurement.kernel_choices.empty())
    return {};
  FLEETFIT_ASSIGN(const auto found, core::parse_json(measurement.kernel_choices, "kernel choices"));
  const auto owner = owner_of(device);
  FLEETFIT_ASSIGN(const auto answers, answers_of(owner));
  const auto now = std::chrono::floor<std::chrono::milliseconds>(workplace_.clock.date());
  std::vector<store::KernelChoiceRecord> fresh;
  for (const auto& [question, answer] : found.items()) {
    if (!answer.is_string()) continue;
    auto& [by_question, questions] = *answers;
    const auto [known, is_new] = by_question.try_emplace(question);
    if (!is_new && known->second == answer.get<std::string>()) continue;
    known->second = answer;
    if (is_new) questions.push_back(question);
    fresh.push_back({.cpu = owner, .key = question, .choice = answer, .ms = {}, .measured = now});
  }
  return fresh.empty() ? Status() : workplace_.store->save_kernel_choices(fresh);
}

engine::Library library_of(const std::string& runtime) {
  if (runtime == "onednn") return engine::Library::onednn;
  if (runtime == "xnnpack") return engine::Library::xnnpack;
  if (runtime == "reference") return engine::Library::reference;
  return engine::Library::automatic;
}

engine::Choices parse_choices(const std::string& text) {
  engine::Choices choices;
  const auto json = core::parse_json(text, "kernel choices");
  if (!json || !json->is_object()) return choices;
  for (const auto& [question, answer] : json->items())
    if (answer.is_string()) choices[question] = answer.get<std::string>();
  return choices;
}

Result<engine::EngineOptions> engine_options(Workplace& workplace, std::string_view name) {
  FLEETFIT_ASSIGN(const auto found, find_device(workplace, name));
  const auto& device = found.device;
  if (const auto why = why_not_here(device); !why.empty())
    return fail(ErrorCode::unsupported, fmt::format("device {}: {}", name, why));
  FLEETFIT_ASSIGN(const auto known, KernelChoices(workplace).known(device));
  return engine::EngineOptions{.threads = device.threads,
                               .library = library_of(device.runtime),
                               .known = parse_choices(known)};
}

}  // namespace fleetfit::app
