#include "app/fit/fit_folder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/core/json.h"
#include "fleetfit/core/sha256.h"

namespace fleetfit::app {

FitFolder::FitFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
  const auto document = core::read_json(folder_ / "steps.json");
  if (!document || !document->is_object()) return;
  for (const auto& [name, value] : document->items())
    if (value.is_number()) numbers_[name] = value.get<double>();
}

std::filesystem::path FitFolder::named(std::string_view prefix, std::string_view content,
                                       std::string_view suffix) const {
  constexpr std::size_t kDigits = 12;
  return folder_ /
         fmt::format("{}-{}.{}", prefix, core::sha256_hex(content).substr(0, kDigits), suffix);
}

Status FitFolder::add_seconds(const std::string& step, double seconds) {
  numbers_[step] += seconds;
  return save();
}

Status FitFolder::set_number(const std::string& name, double value) {
  numbers_[name] = value;
  return save();
}

double FitFolder::seconds(const std::string& step) const {
  const auto found = numbers_.find(step);
  return found == numbers_.end() ? 0 : found->second;
}

Status FitFolder::save() const { return core::write_json(folder_ / "steps.json", numbers_); }

}  // namespace fleetfit::app
