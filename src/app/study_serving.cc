#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "fleetfit/app/study_dialogue.h"

namespace fleetfit::app {
namespace {

constexpr std::int64_t kMostAsked = 100'000;

Result<nlohmann::ordered_json> answer_ask(StudyDialogue& dialogue, const core::JsonView& request) {
  const auto count = request.as_integer({.min = 1, .max = kMostAsked});
  if (!count) return tl::unexpected(count.error());
  const auto asked = dialogue.ask(static_cast<std::size_t>(*count));
  if (!asked) return tl::unexpected(asked.error());
  return to_json(*asked);
}

Result<nlohmann::ordered_json> answer_tell(StudyDialogue& dialogue, const core::JsonView& request) {
  std::vector<core::JsonView> items = {request};
  if (request.value().is_array()) {
    auto list = request.items();
    if (!list) return tl::unexpected(list.error());
    items = std::move(*list);
  }
  std::vector<ToldValues> values;
  for (const auto& item : items) {
    auto one = told_line_from_json(item);
    if (!one) return tl::unexpected(one.error());
    values.push_back(std::move(*one));
  }
  const auto told = dialogue.tell(values);
  if (!told) return tl::unexpected(told.error());
  return nlohmann::ordered_json{{"told", to_json(*told)}};
}

Result<nlohmann::ordered_json> answer(StudyDialogue& dialogue, const std::string& line) {
  const auto document = core::parse_json(line, "request");
  if (!document) return tl::unexpected(document.error());
  const core::JsonView request(*document, "request");
  if (auto known = request.allow_only({"ask", "tell"}); !known)
    return tl::unexpected(known.error());
  const auto ask = request.find("ask");
  if (!ask) return tl::unexpected(ask.error());
  if (*ask) return answer_ask(dialogue, **ask);
  const auto tell = request.at("tell");
  if (!tell) return tl::unexpected(tell.error());
  return answer_tell(dialogue, *tell);
}

}  // namespace

Status serve_study(Workplace& workplace, std::string_view study, const DialogueOptions& options,
                   std::istream& in, std::ostream& out) {
  auto dialogue = StudyDialogue::open(workplace, study, options);
  if (!dialogue) return tl::unexpected(dialogue.error());
  std::string line;
  while (std::getline(in, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto answered = answer(*dialogue, line);
    const auto reply =
        answered ? *answered : nlohmann::ordered_json{{"error", answered.error().message}};
    out << reply.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    if (!out.flush()) return fail(ErrorCode::io, "the answer cannot be written");
  }
  return dialogue->settle();
}

}  // namespace fleetfit::app
