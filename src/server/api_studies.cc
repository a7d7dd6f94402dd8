#include <fmt/format.h>

#include "fleetfit/study/studies.h"
#include "fleetfit/study/views.h"
#include "server/api_json.h"
#include "server/api_state.h"

namespace fleetfit::server {

Result<ApiReply> get_studies(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto limit, call.query.limit());
  FLEETFIT_ASSIGN(const auto studies, study::list_studies(state.workplace().store->studies()));
  const auto after = call.query.text("after");
  auto items = Json::array();
  Json next;
  for (const auto& study : studies) {
    if (study.study.name <= after) continue;
    if (items.size() == limit) {
      next = items.back().at("name");
      break;
    }
    items.push_back(to_json(study));
  }
  return page_reply(std::move(items), std::move(next));
}

Result<ApiReply> get_study(ApiState& state, const Call& call) {
  return study::study_overview(state.workplace().store->studies(), call.names.front())
      .map([](const Json& json) { return json_reply(json); });
}

Result<ApiReply> get_trials(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto limit, call.query.limit());
  FLEETFIT_ASSIGN(const auto after, call.query.integer("after", -1, {.min = 0}));
  FLEETFIT_ASSIGN(auto trials, study::study_trials(state.workplace().store->studies(),
                                                   call.names.front(), after + 1, limit));
  const Json next = trials.size() == limit ? trials.back().at("trial") : Json();
  return page_reply(std::move(trials), next);
}

Result<ApiReply> get_charts(ApiState& state, const Call& call) {
  constexpr std::size_t kMostPoints = 2'000;
  return study::study_charts(state.workplace().store->studies(), call.names.front(), kMostPoints)
      .map([](const Json& json) { return json_reply(json); });
}

}  // namespace fleetfit::server
