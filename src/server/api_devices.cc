#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fleetfit/app/tokens.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/fleet/messages.h"
#include "server/api_json.h"
#include "server/api_state.h"

namespace fleetfit::server {
namespace {

std::string_view state_name(const store::AgentRecord& agent, store::Time online_since) {
  if (!agent.last_seen) return "never";
  return *agent.last_seen >= online_since ? "online" : "offline";
}

Result<Json> device_json(ApiState& state, const store::AgentRecord& agent, store::Time now) {
  FLEETFIT_ASSIGN(const auto counts, state.fleet().count_jobs_of(agent.name));
  Json json{{"name", agent.name},
            {"state", state_name(agent, state.online_since(now))},
            {"agent_version", agent.version},
            {"hardware", agent.hardware},
            {"created", time_text(agent.created)},
            {"last_seen", time_or_null(agent.last_seen)},
            {"jobs", {{"waiting", counts.waiting}, {"running", counts.running}}}};
  auto serving = embedded(agent.serving);
  if (!serving.empty()) json["serving"] = std::move(serving);
  return json;
}

Result<store::AgentRecord> find_agent(ApiState& state, const std::string& name) {
  FLEETFIT_ASSIGN(auto agent, state.fleet().find_agent(name));
  if (!agent) return fail(ErrorCode::not_found, fmt::format("there is no device {}", name));
  return *std::move(agent);
}

Result<store::AgentFilter> filter_of(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto limit, call.query.limit());
  store::AgentFilter filter{.query = call.query.text("query"),
                            .after = call.query.text("after"),
                            .limit = limit,
                            .probes = false};
  const auto wanted = call.query.text("state");
  const auto since = state.online_since(call.now);
  if (wanted == "online") {
    filter.seen_since = since;
  } else if (wanted == "offline") {
    filter.seen_before = since;
  } else if (wanted == "never") {
    filter.never_seen = true;
  } else if (!wanted.empty()) {
    return fail(ErrorCode::invalid_input, "?state: expected online, offline or never");
  }
  return filter;
}

/// The newest of all settings of a device, newest first.
Result<Json> newest_measurements(ApiState& state,
                                 const std::vector<LatencyIndex::Device>& settings) {
  constexpr std::size_t kMost = 50;
  std::vector<store::MeasurementRecord> all;
  for (const auto& device : settings) {
    FLEETFIT_ASSIGN(auto some, state.store().list_measurements(
                                   {.device = device.name, .limit = kMost, .operators = false}));
    std::ranges::move(some, std::back_inserter(all));
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &store::MeasurementRecord::started);
  auto list = Json::array();
  for (std::size_t i = 0; i < std::min(kMost, all.size()); ++i)
    list.push_back(core::to_json(all[i]));
  return list;
}

Result<Json> settings_json(ApiState& state, const std::vector<LatencyIndex::Device>& settings) {
  auto list = Json::array();
  for (const auto& device : settings) {
    FLEETFIT_ASSIGN(const auto known, state.store().find_device(device.name));
    auto json = known ? embedded(known->settings) : Json::object();
    json["name"] = device.name;
    json["fingerprint"] = device.fingerprint;
    json["models"] = device.models;
    list.push_back(std::move(json));
  }
  return list;
}

/// Tokens that are of no use without the device.
Status revoke_tokens_of(ApiState& state, const std::string& device, store::Time now) {
  FLEETFIT_ASSIGN(const auto tokens, state.fleet().list_tokens());
  for (const auto& token : tokens) {
    if (token.device != device || token.revoked) continue;
    FLEETFIT_TRY(state.fleet().revoke_token(token.id, now));
  }
  return {};
}

/// The newest finished adaptation of a device, if there is one among its last jobs.
Result<std::optional<store::JobRecord>> newest_adaptation(ApiState& state,
                                                          const std::string& device,
                                                          const std::string& bundle) {
  constexpr std::size_t kPage = 100;
  constexpr int kPages = 20;
  store::JobFilter filter{.agent = device, .state = store::JobState::finished, .limit = kPage};
  for (int page = 0; page < kPages; ++page) {
    FLEETFIT_ASSIGN(auto jobs, state.fleet().list_jobs(filter));
    for (auto& job : jobs) {
      if (job.kind != "adapt") continue;
      if (bundle.empty() || embedded(job.request).value("bundle", "") == bundle)
        return std::move(job);
    }
    if (jobs.size() < kPage) break;
    filter.before = jobs.back().id;
  }
  return std::nullopt;
}

/// Those that are kept and those that were measured.
Result<std::size_t> count_models(ApiState& state) {
  FLEETFIT_TRY(state.latencies().refresh());
  FLEETFIT_ASSIGN(const auto kept, state.store().list_models());
  std::set<std::string> hashes;
  for (const auto& model : kept) hashes.insert(model.hash);
  for (auto& model : state.latencies().models()) hashes.insert(std::move(model.hash));
  return hashes.size();
}

Json pareto_points(const Json& result) {
  auto points = Json::array();
  const auto pool = result.find("pool");
  if (pool == result.end() || !pool->is_array()) return points;
  for (const auto& entry : *pool) {
    if (!entry.is_object() || !entry.contains("subnet")) continue;
    points.push_back({{"design", entry.at("subnet")},
                      {"latency_ms", entry.value("latency_ms", Json())},
                      {"accuracy", entry.value("accuracy", Json())}});
  }
  return points;
}

}  // namespace

Result<ApiReply> get_summary(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto agents, state.fleet().count_agents(state.online_since(call.now)));
  FLEETFIT_ASSIGN(const auto jobs, state.fleet().count_jobs());
  FLEETFIT_ASSIGN(const auto newest, state.fleet().newest_event());
  FLEETFIT_ASSIGN(const auto studies, state.store().studies().list_studies());
  FLEETFIT_ASSIGN(const auto models, count_models(state));
  return json_reply({{"devices",
                      {{"all", agents.all},
                       {"online", agents.online},
                       {"offline", agents.all - agents.online - agents.never},
                       {"never", agents.never}}},
                     {"jobs",
                      {{"waiting", jobs.waiting},
                       {"running", jobs.running},
                       {"finished", jobs.finished},
                       {"failed", jobs.failed},
                       {"cancelled", jobs.cancelled}}},
                     {"models", models},
                     {"measurements", state.latencies().measurements()},
                     {"studies", studies.size()},
                     {"newest_event", newest}});
}

Result<ApiReply> get_devices(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto filter, filter_of(state, call));
  FLEETFIT_ASSIGN(const auto agents, state.fleet().list_agents(filter));
  auto items = Json::array();
  for (const auto& agent : agents) {
    FLEETFIT_ASSIGN(auto item, device_json(state, agent, call.now));
    items.push_back(std::move(item));
  }
  const Json next = agents.size() == filter.limit ? Json(agents.back().name) : Json();
  return page_reply(std::move(items), next);
}

Result<ApiReply> post_device(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto body, parse_body(call.request));
  const core::JsonView view(body, "body");
  FLEETFIT_TRY(view.allow_only({"name"}));
  FLEETFIT_ASSIGN(const auto name, view.text("name"));
  if (auto ok = fleet::check_name(name); !ok)
    return core::within("body: name", std::move(ok.error()));
  FLEETFIT_ASSIGN(const auto known, state.fleet().find_agent(name));
  if (known) return refusal(409, "invalid_input", fmt::format("there is a device {}", name));
  const store::AgentRecord agent{.name = name, .created = call.now};
  FLEETFIT_TRY(state.fleet().save_agents({&agent, 1}));
  FLEETFIT_ASSIGN(
      const auto created,
      app::create_token(state.fleet(),
                        app::TokenRequest{.name = name, .role = store::Role::agent, .device = name},
                        call.now));
  FLEETFIT_TRY(state.note(call, "device.add", name));
  FLEETFIT_TRY(state.tell(device_event(name, "added", call.now)));
  FLEETFIT_ASSIGN(auto json, device_json(state, agent, call.now));
  json["token"] = created.token;
  return json_reply(json, 201);
}

Result<ApiReply> get_device(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto agent, find_agent(state, call.names.front()));
  FLEETFIT_ASSIGN(auto json, device_json(state, agent, call.now));
  FLEETFIT_TRY(state.latencies().refresh());
  const auto devices = state.latencies().settings_of(agent.name);
  FLEETFIT_ASSIGN(auto settings, settings_json(state, devices));
  FLEETFIT_ASSIGN(auto measurements, newest_measurements(state, devices));
  json["probe"] = embedded(agent.probe);
  json["settings"] = std::move(settings);
  json["measurements"] = std::move(measurements);
  return json_reply(json);
}

Result<ApiReply> delete_device(ApiState& state, const Call& call) {
  const auto& name = call.names.front();
  FLEETFIT_ASSIGN(const auto removed, state.fleet().remove_agent(name));
  if (!removed) return fail(ErrorCode::not_found, fmt::format("there is no device {}", name));
  state.presence().forget(name);
  FLEETFIT_TRY(revoke_tokens_of(state, name, call.now));
  FLEETFIT_TRY(state.note(call, "device.remove", name));
  FLEETFIT_TRY(state.tell(device_event(name, "removed", call.now)));
  return json_reply(Json::object());
}

Result<ApiReply> get_pareto(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto agent, find_agent(state, call.names.front()));
  FLEETFIT_ASSIGN(const auto job, newest_adaptation(state, agent.name, call.query.text("model")));
  if (!job)
    return json_reply({{"points", Json::array()}, {"chosen", nullptr}, {"budget_ms", nullptr}});
  const auto result = embedded(job->result);
  const auto best = result.value("best", Json());
  return json_reply({{"points", pareto_points(result)},
                     {"chosen", best.is_object() ? best.value("subnet", Json()) : Json()},
                     {"budget_ms", embedded(job->request).value("budget_ms", Json())},
                     {"bundle", embedded(job->request).value("bundle", Json())},
                     {"job", job->id},
                     {"finished", time_or_null(job->ended)}});
}

}  // namespace fleetfit::server
