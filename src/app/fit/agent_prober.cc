#include "app/fit/probers.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "fleetfit/app/measuring.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/core/sleep.h"
#include "fleetfit/graph/export.h"

namespace fleetfit::app {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLongestPause{2000};

Error error_of(const fleet::CallError& error) {
  const auto code = error.status == 401 || error.status == 403 ? ErrorCode::invalid_input
                                                               : ErrorCode::device_failed;
  return {code, error.message};
}

/// A text of an answer, "" where there is none.
std::string text_of(const json& answer, const char* key) {
  const auto found = answer.find(key);
  return found != answer.end() && found->is_string() ? found->get<std::string>() : std::string();
}

class AgentProber final : public fit::Prober {
 public:
  AgentProber(const ProbePlace& place, MeasuredByAgent from, std::unique_ptr<fleet::Client> client,
              ProbeCount& count)
      : place_(place), from_(std::move(from)), client_(std::move(client)), count_(count) {}

  Result<std::vector<fit::Probe>> measure(space::DesignBatch designs) override {
    FLEETFIT_TRY(read_store());
    const auto start = place_.workplace.clock.now();
    std::map<std::string, std::int64_t> jobs;  // by design
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto text = from_.space.space.format(designs[i]);
      ++count_.asked;
      if (known_.contains(text) || jobs.contains(text)) continue;
      FLEETFIT_ASSIGN(const auto job, ask_for(designs[i], text));
      jobs.emplace(text, job);
    }
    FLEETFIT_ASSIGN(auto problems, wait_for(jobs));
    if (!jobs.empty()) {
      const std::chrono::duration<double> took = place_.workplace.clock.now() - start;
      count_.made += jobs.size() - problems.size();
      count_.seconds += took.count();
    }
    std::vector<fit::Probe> probes;
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto text = from_.space.space.format(designs[i]);
      const auto known = known_.find(text);
      probes.push_back(known == known_.end() ? fit::Probe{.problem = problems.at(text)}
                                             : probe_of(known->second, from_.budgets));
    }
    return probes;
  }

 private:
  /// The server's name of what is measured.
  std::string device() const {
    return from_.as.empty() ? from_.agent : fmt::format("{}.{}", from_.agent, from_.as);
  }

  /// Measurements of the newest device of that name count; a board that was changed is another one.
  Status read_store() {
    if (std::exchange(is_read_, true)) return {};
    FLEETFIT_ASSIGN(auto records,
                    place_.workplace.store->list_measurements(
                        {.device = device(), .space = from_.space.name, .operators = false}));
    for (auto& record : records) {
      const bool same = record.device_fingerprint == records.front().device_fingerprint;
      if (same && record.design && record.status != store::MeasurementStatus::failed)
        known_.try_emplace(*record.design, record);
    }
    return {};
  }

  /// Gives the job's number.
  Result<std::int64_t> ask_for(space::Design design, const std::string& text) {
    FLEETFIT_ASSIGN(const auto hash, send_model(design, text));
    const fleet::MeasureJob measure{.model = hash,
                                    .name = "design.onnx",
                                    .settings = from_.settings,
                                    .as = from_.as,
                                    .space = from_.space.name,
                                    .design = text,
                                    .max_time_s = from_.max_time_s};
    return add_job(to_json(fleet::JobRequest(measure)));
  }

  /// A job of this request that was asked for before is taken over, unless it ended in vain: agents
  /// that were given up come back.
  Result<std::int64_t> add_job(const json& request) {
    const auto key = "fit-" + core::sha256_hex(from_.agent + " " + request.dump());
    for (int times = 0;; ++times) {
      const json job{{"device", from_.agent},
                     {"kind", "measure"},
                     {"request", request},
                     {"key", times == 0 ? key : fmt::format("{}-{}", key, times)}};
      FLEETFIT_ASSIGN(const auto answer, call([&] { return client_->post("/jobs", job); }));
      auto id = core::JsonView(answer, "the server's answer").integer("id");
      if (!id) return id;
      const auto state = text_of(answer, "state");
      const bool was_in_vain = state == "failed" || state == "cancelled";
      if (was_in_vain && !asked_.contains(*id)) continue;
      asked_.insert(*id);
      return id;
    }
  }

  Result<std::string> send_model(space::Design design, const std::string& text) {
    FLEETFIT_ASSIGN(const auto graph, core::within(text, from_.space.space.lower(design)));
    FLEETFIT_ASSIGN(const auto folder, core::ScratchFolder::create());
    const auto file = folder.path() / "design.onnx";
    FLEETFIT_TRY(graph::export_onnx_file(graph, file, core::Durability::scratch));
    FLEETFIT_ASSIGN(const auto answer,
                    call([&] { return client_->upload("/files?name=design.onnx", file); }));
    return core::JsonView(answer, "the server's answer").text("hash");
  }

  /// Calls the server, again and again while it is away but no longer than an agent is waited for.
  template <class Call>
  Result<json> call(const Call& made) {
    const auto end = place_.workplace.clock.now() + patience();
    milliseconds pause = kFirstPause;
    while (true) {
      auto answer = made();
      if (answer) return *std::move(answer);
      if (!answer.error().passing() || place_.workplace.clock.now() > end)
        return tl::unexpected(error_of(answer.error()));
      if (!sleep(pause)) return fail(ErrorCode::cancelled, "stopped");
    }
  }

  std::chrono::nanoseconds patience() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(from_.patience_s));
  }

  /// False if it was woken to stop.
  bool sleep(milliseconds& pause) const {
    const auto length = std::exchange(pause, std::min(2 * pause, kLongestPause));
    return core::sleep_unless_stopped(length, place_.stop);
  }

  /// Why some designs have no measurement. While none of the jobs moves, the agent is taken for
  /// away; jobs that nobody waits for any more are cancelled.
  Result<std::map<std::string, std::string>> wait_for(std::map<std::string, std::int64_t> jobs) {
    std::map<std::string, std::string> problems;
    auto moved = place_.workplace.clock.now();
    milliseconds pause = kFirstPause;
    while (!jobs.empty()) {
      const auto ended = look_at(jobs, problems);
      if (!ended) return give_up(jobs, ended.error());
      const auto now = place_.workplace.clock.now();
      if (*ended) {
        moved = now;
        pause = kFirstPause;
      } else if (now - moved > patience()) {
        return give_up(jobs, away());
      } else if (!sleep(pause)) {
        return give_up(jobs, {ErrorCode::cancelled, "stopped"});
      }
    }
    return problems;
  }

  /// Takes those that have ended out of the list, and says whether there was one.
  Result<bool> look_at(std::map<std::string, std::int64_t>& jobs,
                       std::map<std::string, std::string>& problems) {
    bool any = false;
    for (auto job = jobs.begin(); job != jobs.end();) {
      const auto path = fmt::format("/jobs/{}", job->second);
      FLEETFIT_ASSIGN(const auto answer, call([&] { return client_->get(path); }));
      const auto state = text_of(answer, "state");
      if (state == "waiting" || state == "running") {
        ++job;
        continue;
      }
      if (auto problem = take(answer, state, job->first)) problems.emplace(job->first, *problem);
      job = jobs.erase(job);
      any = true;
    }
    return any;
  }

  /// Keeps the measurement, or says why there is none.
  std::optional<std::string> take(const json& job, const std::string& state,
                                  const std::string& design) {
    if (state != "finished")
      return fmt::format("the job was {}: {}", state, text_of(job, "reason"));
    const auto result = core::JsonView(job, "the server's answer").at("result");
    if (!result) return result.error().message;
    auto record = read_measured(*result);
    if (!record) return record.error().message;
    record->device = device();
    record->space = from_.space.name;
    record->design = design;
    record->model_name = design;
    if (auto id = place_.workplace.store->add_measurement(*record); !id) return id.error().message;
    known_.emplace(design, *std::move(record));
    return std::nullopt;
  }

  Error away() {
    const auto answer = client_->get(fmt::format("/devices/{}", from_.agent));
    const auto seen = answer ? text_of(*answer, "last_seen") : std::string();
    return {ErrorCode::device_failed,
            fmt::format("the agent {} has ended no job in {:g} s, and was {}", from_.agent,
                        from_.patience_s, seen.empty() ? "never seen" : "last seen at " + seen)};
  }

  tl::unexpected<Error> give_up(const std::map<std::string, std::int64_t>& jobs, Error error) {
    for (const auto& [design, job] : jobs)
      static_cast<void>(client_->remove(fmt::format("/jobs/{}", job)));
    return tl::unexpected(std::move(error));
  }

  ProbePlace place_;
  MeasuredByAgent from_;
  std::unique_ptr<fleet::Client> client_;
  ProbeCount& count_;
  bool is_read_ = false;
  std::map<std::string, store::MeasurementRecord> known_;  // by design
  std::set<std::int64_t> asked_;                           // jobs of this run
};

}  // namespace

Result<std::unique_ptr<fleet::Client>> call_server(const fit::Fleet& fleet) {
  if (fleet.server.empty() || fleet.token_file.empty()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: a device with an agent needs server: URL and token_file: FILE",
                            fleet.file.string()));
  }
  FLEETFIT_ASSIGN(auto token,
                  core::read_file(fleet.located(fleet.token_file), {.max_bytes = 4096}));
  token.erase(token.find_last_not_of(" \r\n\t") + 1);
  return fleet::make_client({.server = fleet.server,
                             .token = std::move(token),
                             .authority = fleet.located(fleet.authority)});
}

Result<std::string> describe_agent(const fit::Fleet& fleet, const std::string& agent) {
  FLEETFIT_ASSIGN(const auto client, call_server(fleet));
  const auto answer = client->get("/devices/" + agent);
  if (!answer) return core::within("agent " + agent, error_of(answer.error()));
  const auto hardware = text_of(*answer, "hardware");
  return fmt::format("{}, by the agent {}", hardware.empty() ? "not seen yet" : hardware, agent);
}

std::unique_ptr<fit::Prober> make_agent_prober(const ProbePlace& place, MeasuredByAgent from,
                                               std::unique_ptr<fleet::Client> client,
                                               ProbeCount& count) {
  return std::make_unique<AgentProber>(place, std::move(from), std::move(client), count);
}

}  // namespace fleetfit::app
