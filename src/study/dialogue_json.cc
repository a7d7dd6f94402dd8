#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>
#include <string>

#include "fleetfit/study/dialogue.h"

namespace fleetfit::study {
namespace {

using nlohmann::ordered_json;

Status set_number(ToldValues& told, const std::string& name, const core::JsonView& value) {
  FLEETFIT_ASSIGN(const auto number, value.as_number());
  if (!std::isfinite(number)) return value.error("expected a finite number");
  if (name == "accuracy") {
    told.accuracy = number;
  } else if (name == "loss") {
    told.loss = number;
  } else if (name == "time_s" || name == "energy_j") {
    if (number < 0) return value.error("expected a number that is not negative");
    if (name == "time_s") {
      told.training_s = number;
    } else {
      told.training_j = number;
    }
  } else {
    told.other[name] = number;
  }
  return {};
}

}  // namespace

Result<ToldValues> told_values_from_json(std::int64_t trial, const core::JsonView& json) {
  ToldValues told{.trial = trial};
  FLEETFIT_ASSIGN(const auto members, json.members());
  if (members.empty()) return json.error("expected a number, or \"failed\" with a reason");
  for (const auto& [name, value] : members) {
    if (name == "failed" || name == "model") {
      FLEETFIT_ASSIGN(auto text, value.as_text());
      if (name == "failed") {
        told.failed = std::move(text);
      } else {
        told.model = std::move(text);
      }
    } else if (auto set = set_number(told, name, value); !set) {
      return tl::unexpected(set.error());
    }
  }
  return told;
}

Result<ToldValues> told_line_from_json(const core::JsonView& json) {
  FLEETFIT_TRY(json.allow_only({"trial", "values"}));
  FLEETFIT_ASSIGN(const auto trial, json.integer("trial", {.min = 0}));
  FLEETFIT_ASSIGN(const auto values, json.at("values"));
  return told_values_from_json(trial, values);
}

Result<std::vector<ToldValues>> read_told_lines(std::istream& in) {
  std::vector<ToldValues> all;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto place = "line " + std::to_string(number);
    FLEETFIT_ASSIGN(const auto document, core::parse_json(line, place));
    FLEETFIT_ASSIGN(auto told, told_line_from_json(core::JsonView(document, place)));
    all.push_back(std::move(told));
  }
  return all;
}

ordered_json to_json(const Asked& asked) {
  ordered_json trials = ordered_json::array();
  for (const auto& trial : asked.trials) {
    trials.push_back(
        {{"trial", trial.trial},
         {"params", ordered_json::parse(trial.params, nullptr, false)},
         {"budget",
          {{"epochs", trial.budget.epochs}, {"data_fraction", trial.budget.data_fraction}}},
         {"level", trial.level},
         {"resume", trial.resume}});
  }
  return {{"trials", std::move(trials)}, {"done", asked.done}};
}

ordered_json to_json(const std::vector<Told>& told) {
  ordered_json list = ordered_json::array();
  for (const auto& one : told)
    list.push_back(
        {{"trial", one.trial},
         {"status", one.status},
         {"objective", one.values.empty() ? ordered_json(nullptr) : ordered_json(one.values)},
         {"feasible", one.keeps_limits}});
  return list;
}

}  // namespace fleetfit::study
