#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
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

constexpr std::int64_t kMostAsked = 100'000;

Result<ordered_json> answer_ask(StudyDialogue& dialogue, const core::JsonView& request) {
  FLEETFIT_ASSIGN(const auto count, request.as_integer({.min = 1, .max = kMostAsked}));
  FLEETFIT_ASSIGN(const auto asked, dialogue.ask(static_cast<std::size_t>(count)));
  return to_json(asked);
}

Result<ordered_json> answer_tell(StudyDialogue& dialogue, const core::JsonView& request) {
  std::vector<core::JsonView> items = {request};
  if (request.value().is_array()) {
    FLEETFIT_ASSIGN(auto list, request.items());
    items = std::move(list);
  }
  std::vector<ToldValues> values;
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(auto one, told_line_from_json(item));
    values.push_back(std::move(one));
  }
  FLEETFIT_ASSIGN(const auto told, dialogue.tell(values));
  return ordered_json{{"told", to_json(told)}};
}

Result<ordered_json> answer(StudyDialogue& dialogue, const std::string& line) {
  FLEETFIT_ASSIGN(const auto document, core::parse_json(line, "request"));
  const core::JsonView request(document, "request");
  FLEETFIT_TRY(request.allow_only({"ask", "tell"}));
  FLEETFIT_ASSIGN(const auto ask, request.find("ask"));
  if (ask) return answer_ask(dialogue, *ask);
  FLEETFIT_ASSIGN(const auto tell, request.at("tell"));
  return answer_tell(dialogue, tell);
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

Status serve_study(const StudyPlace& place, std::string_view study, const DialogueOptions& options,
                   std::istream& in, std::ostream& out) {
  FLEETFIT_ASSIGN(auto dialogue, StudyDialogue::open(place, study, options));
  std::string line;
  while (std::getline(in, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto answered = answer(dialogue, line);
    const auto reply = answered ? *answered : ordered_json{{"error", answered.error().message}};
    out << reply.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    if (!out.flush()) return fail(ErrorCode::io, "the answer cannot be written");
  }
  return dialogue.settle();
}

}  // namespace fleetfit::study
