#include "server/job_results.h"

#include <fmt/format.h>

#include <filesystem>
#include <variant>

#include "fleetfit/app/measuring.h"
#include "server/api_json.h"

namespace fleetfit::server {
namespace {

/// How one attempt has ended, and what it has measured.
struct Finding {
  std::optional<store::JobRecord> job = std::nullopt;
  store::JobEnd end = {};
  std::optional<store::MeasurementRecord> measurement = std::nullopt;
};

bool is_text(std::string_view text) { return text.find('\0') == std::string_view::npos; }

tl::unexpected<Error> senseless(std::string_view field, std::string_view why) {
  return fail(ErrorCode::invalid_input, fmt::format("result: {}: {}", field, why));
}

Status check_latency(const store::Latency& latency) {
  if (!(latency.median_ms > 0)) return senseless("latency_ms", "a run that takes no time is none");
  if (!(latency.mean_ms > 0) || !(latency.p90_ms >= 0) || !(latency.p99_ms >= 0))
    return senseless("latency_ms", "is below zero");
  if (!(latency.ci95_ms.low >= 0) || latency.ci95_ms.low > latency.ci95_ms.high)
    return senseless("latency_ms.ci95", "expected the lower end first");
  return {};
}

/// Fails with `invalid_input`, naming the field, if it makes no sense.
Status check_measurement(const store::MeasurementRecord& record) {
  if (record.latency)
    if (auto ok = check_latency(*record.latency); !ok) return ok;
  if (!record.latency && record.status == store::MeasurementStatus::ok)
    return senseless("latency_ms", "is missing though the status is ok");
  if (record.status != store::MeasurementStatus::ok && record.reason.empty())
    return senseless("reason", "one is needed, as the status is not ok");
  if (record.runs < 0) return senseless("runs", "is below zero");
  if (record.overhead_ms && !(*record.overhead_ms >= 0))
    return senseless("overhead_ms", "is below zero");
  if (record.energy && !(record.energy->mj >= 0)) return senseless("energy_mj", "is below zero");
  bool texts = is_text(record.reason) && is_text(record.device_fingerprint);
  for (const auto& op : record.operators) {
    if (!(op.ms >= 0)) return senseless("ops", "an operator takes less than no time");
    texts = texts && is_text(op.name) && is_text(op.type) && is_text(op.kernel);
  }
  if (!texts) return senseless("text", "contains a NUL character");
  return {};
}

/// The measurement of a finished job as it is to be kept.
Result<store::MeasurementRecord> measurement_of(const store::JobRecord& job,
                                                const std::string& result, store::Time now) {
  FLEETFIT_ASSIGN(const auto request_json, core::parse_json(job.request, "request"));
  FLEETFIT_ASSIGN(const auto request,
                  fleet::parse_request(job.kind, core::JsonView(request_json, "request")));
  const auto& asked = std::get<fleet::MeasureJob>(request);
  FLEETFIT_ASSIGN(const auto json, core::parse_json(result, "result"));
  auto record = app::read_measured(core::JsonView(json, "result"));
  if (!record) return record;
  FLEETFIT_TRY(check_measurement(*record));
  if (record->model_hash != asked.model)
    return fail(ErrorCode::invalid_input,
                "result: hash: is not that of the model that was asked "
                "for");
  record->device = asked.as.empty() ? job.agent : job.agent + "." + asked.as;
  record->model_name = std::filesystem::path(asked.name).stem().string();
  if (!asked.space.empty()) record->space = asked.space;
  if (!asked.design.empty()) record->design = asked.design;
  if (record->started == store::Time{}) record->started = job.started.value_or(now);
  auto conditions = embedded(record->conditions);
  conditions["job"] = job.id;
  record->conditions = conditions.dump();
  return record;
}

Result<Finding> finding_of(ApiState& state, const fleet::Outcome& outcome, store::Time now) {
  Finding finding;
  finding.end = {.job = outcome.attempt.job,
                 .attempt = outcome.attempt.attempt,
                 .state = outcome.finished ? store::JobState::finished : store::JobState::failed,
                 .reason = outcome.reason,
                 .result = outcome.result};
  FLEETFIT_ASSIGN(finding.job, state.fleet().find_job(outcome.attempt.job));
  if (!outcome.finished || !finding.job || finding.job->kind != "measure") return finding;
  auto measurement = measurement_of(*finding.job, outcome.result, now);
  if (measurement) {
    finding.measurement = *std::move(measurement);
  } else {
    finding.end.state = store::JobState::failed;
    finding.end.reason = measurement.error().message;
  }
  return finding;
}

/// Whether a measurement of that job is kept already.
Result<bool> is_kept(ApiState& state, const store::MeasurementRecord& measurement,
                     std::int64_t job) {
  FLEETFIT_ASSIGN(const auto kept,
                  state.store().list_measurements({.device = measurement.device,
                                                   .model_hash = measurement.model_hash,
                                                   .operators = false}));
  return std::ranges::any_of(kept, [&](const store::MeasurementRecord& record) {
    return embedded(record.conditions).value("job", std::int64_t{0}) == job;
  });
}

Json measurement_body(const store::MeasurementRecord& record, std::int64_t id) {
  return {{"id", id},
          {"model", record.model_hash},
          {"name", record.model_name},
          {"device", record.device},
          {"status", store::to_string(record.status)},
          {"median_ms", record.latency ? Json(record.latency->median_ms) : Json()}};
}

/// Those of jobs that have ended now, and of those that had ended when a server was killed.
Result<std::vector<const Finding*>> missing_measurements(ApiState& state,
                                                         const std::vector<Finding>& findings,
                                                         const std::vector<store::Ended>& ended) {
  std::vector<const Finding*> missing;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (!findings[i].measurement || ended[i] == store::Ended::lost) continue;
    if (ended[i] == store::Ended::already) {
      FLEETFIT_ASSIGN(const auto kept,
                      is_kept(state, *findings[i].measurement, findings[i].end.job));
      if (kept) continue;
    }
    missing.push_back(&findings[i]);
  }
  return missing;
}

Status keep_measurements(ApiState& state, const std::vector<const Finding*>& missing,
                         store::Time now, std::vector<store::EventRecord>& events) {
  std::vector<store::MeasurementRecord> records;
  for (const auto* finding : missing) records.push_back(*finding->measurement);
  if (records.empty()) return {};
  FLEETFIT_ASSIGN(const auto ids, state.store().add_measurements(records));
  for (std::size_t i = 0; i < records.size(); ++i)
    events.push_back({.agent = missing[i]->job->agent,
                      .job = missing[i]->end.job,
                      .kind = "measurement",
                      .body = measurement_body(records[i], ids[i]).dump(),
                      .time = now});
  return {};
}

std::vector<store::EventRecord> events_of(const std::vector<Finding>& findings,
                                          const std::vector<store::Ended>& ended, store::Time now) {
  std::vector<store::EventRecord> events;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (ended[i] != store::Ended::now || !findings[i].job) continue;
    auto job = *findings[i].job;
    job.state = findings[i].end.state;
    job.reason = findings[i].end.reason;
    events.push_back(job_event(job, now));
  }
  return events;
}

}  // namespace

Result<std::vector<store::Ended>> keep_results(ApiState& state, const std::string& device,
                                               std::span<const fleet::Outcome> outcomes,
                                               store::Time now) {
  const std::lock_guard one_at_a_time(state.results_mutex());
  std::vector<Finding> findings;
  std::vector<store::JobEnd> ends;
  for (const auto& outcome : outcomes) {
    FLEETFIT_ASSIGN(auto finding, finding_of(state, outcome, now));
    ends.push_back(finding.end);
    findings.push_back(std::move(finding));
  }
  FLEETFIT_ASSIGN(const auto ended, state.fleet().end_jobs(device, ends, now));
  FLEETFIT_ASSIGN(const auto missing, missing_measurements(state, findings, ended));
  auto events = events_of(findings, ended, now);
  FLEETFIT_TRY(keep_measurements(state, missing, now, events));
  FLEETFIT_TRY(state.tell(events));
  return ended;
}

}  // namespace fleetfit::server
