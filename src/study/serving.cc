#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "fleetfit/study/dialogue.h"

namespace fleetfit::study {
namespace {

constexpr std::int64_t kMostAsked = 100'000;

Result<nlohmann::ordered_json> answer_ask(StudyDialogue& dialogue, const core::JsonView& request) {
  FLEETFIT_ASSIGN(const auto count, request.as_integer({.min = 1, .max = kMostAsked}));
  FLEETFIT_ASSIGN(const auto asked, dialogue.ask(static_cast<std::size_t>(count)));
  return to_json(asked);
}

Result<nlohmann::ordered_json> answer_tell(StudyDialogue& dialogue, const core::JsonView& request) {
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
  return nlohmann::ordered_json{{"told", to_json(told)}};
}

Result<nlohmann::ordered_json> answer(StudyDialogue& dialogue, const std::string& line) {
  FLEETFIT_ASSIGN(const auto document, core::parse_json(line, "request"));
  const core::JsonView request(document, "request");
  FLEETFIT_TRY(request.allow_only({"ask", "tell"}));
  FLEETFIT_ASSIGN(const auto ask, request.find("ask"));
  if (ask) return answer_ask(dialogue, *ask);
  FLEETFIT_ASSIGN(const auto tell, request.at("tell"));
  return answer_tell(dialogue, tell);
}

}  // namespace

Status serve_study(const StudyPlace& place, std::string_view study, const DialogueOptions& options,
                   std::istream& in, std::ostream& out) {
  FLEETFIT_ASSIGN(auto dialogue, StudyDialogue::open(place, study, options));
  std::string line;
  while (std::getline(in, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto answered = answer(dialogue, line);
    const auto reply =
        answered ? *answered : nlohmann::ordered_json{{"error", answered.error().message}};
    out << reply.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    if (!out.flush()) return fail(ErrorCode::io, "the answer cannot be written");
  }
  return dialogue.settle();
}

}  // namespace fleetfit::study
