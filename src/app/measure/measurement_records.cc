#include "app/measure/measurement_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/core/json.h"

namespace fleetfit::app {
namespace {

/// Without what stores do not keep.
std::optional<store::Latency> kept(std::optional<store::Latency> latency) {
  if (latency) latency->session_ci95_ms = latency->mean_ci95_ms = {};
  return latency;
}

std::optional<store::Energy> kept(std::optional<store::Energy> energy) {
  if (energy) energy->meter.clear();
  return energy;
}

std::string conditions_of(const measure::Measurement& measurement) {
  auto json = measure::to_json(measurement.conditions);
  const auto all = measure::to_json(measurement);
  for (const char* key : {"warmup_runs", "outliers", "drift", "bimodal", "unlike_before", "notes"})
    json[key] = all.at(key);
  if (measurement.latency) json["session_ci95_ms"] = all.at("latency_ms").at("session_ci95");
  return core::format_json_line(json);
}

/// A field of the record's protocol; `otherwise` where it has none.
template <class T>
T protocol_field(const store::MeasurementRecord& record, const char* field, T otherwise) {
  const auto protocol = core::parse_json(record.protocol, "protocol");
  return protocol && protocol->is_object() ? protocol->value(field, otherwise) : otherwise;
}

/// Where the operators are the same.
void take_lesser_times(const std::vector<store::OperatorTime>& from,
                       std::vector<store::OperatorTime>& into) {
  const auto same = [](const auto& a, const auto& b) { return a.name == b.name; };
  if (!std::ranges::equal(from, into, same)) return;
  for (std::size_t i = 0; i < into.size(); ++i) into[i].ms = std::min(into[i].ms, from[i].ms);
}

}  // namespace

bool answers(const store::MeasurementRecord& record, const measure::Protocol& protocol) {
  return record.status != store::MeasurementStatus::failed && record.latency &&
         (!protocol.operators || protocol_field(record, "operators", false));
}

int sessions_shared_by(const store::MeasurementRecord& record) {
  return std::max(1, protocol_field(record, "sessions", 1));
}

Result<store::MeasurementRecord> read_measured(const core::JsonView& measured) {
  MeasuredModel model;
  for (const auto& [key, field] : {std::pair{"model", &model.model}, std::pair{"hash", &model.hash},
                                   std::pair{"device", &model.device},
                                   std::pair{"device_fingerprint", &model.device_fingerprint}}) {
    FLEETFIT_ASSIGN(*field, measured.text(key));
  }
  FLEETFIT_ASSIGN(model.measurement, measure::measurement_from_json(measured));
  return to_record(model);
}

store::MeasurementRecord to_record(const MeasuredModel& measured) {
  const auto& m = measured.measurement;
  store::MeasurementRecord record{
      .device = measured.device,
      .device_fingerprint = measured.device_fingerprint,
      .model_hash = measured.hash,
      .model_name = std::filesystem::path(measured.model).stem().string(),
      .space = measured.space,
      .design = measured.design,
      .status = m.status,
      .reason = m.reason,
      .latency = kept(m.latency),
      .runs = m.runs,
      .overhead_ms = m.overhead_ms,
      .energy = kept(m.energy),
      .protocol = core::format_json_line(measure::to_json(m.protocol)),
      .conditions = conditions_of(m),
      .started = m.started,
      .operators = m.operators};
  if (m.peak_memory_bytes > 0) record.peak_memory_bytes = m.peak_memory_bytes;
  return record;
}

void KnownSessions::add(const store::MeasurementRecord& record) {
  median_ms.push_back(record.latency->median_ms);
  share += 1.0 / sessions_shared_by(record);
}

bool KnownSessions::agree(double target) const {
  return median_ms.size() >= kLeastSessions && fastest_agree(median_ms, target);
}

int KnownSessions::usual_missing(double target) const {
  if (failed || agree(target)) return 0;
  return std::max(0, static_cast<int>(std::lround((1 - share) * kUsualSessions)));
}

bool fastest_agree(std::vector<double> median_ms, double target) {
  std::ranges::partial_sort(median_ms, median_ms.begin() + 2);
  return median_ms[1] <= (1 + 2 * target) * median_ms[0];
}

store::MeasurementRecord merge_sessions(std::vector<store::MeasurementRecord> sessions,
                                        double target) {
  const auto median = [](const auto& record) { return record.latency->median_ms; };
  auto merged = *std::ranges::min_element(sessions, {}, median);
  if (sessions.size() < 2) return merged;
  std::vector<double> medians;
  for (const auto& session : sessions) {
    medians.push_back(session.latency->median_ms);
    take_lesser_times(session.operators, merged.operators);
  }
  const bool agree = fastest_agree(medians, target);
  merged.status = agree ? store::MeasurementStatus::ok : store::MeasurementStatus::unstable;
  merged.reason = agree ? ""
                        : fmt::format("of {} sessions no two of the fastest agree within {:.2g} %",
                                      sessions.size(), 200 * target);
  return merged;
}

}  // namespace fleetfit::app
