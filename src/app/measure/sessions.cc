#include "app/measure/sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/json.h"

namespace fleetfit::app {

using measure::MeasurementStatus;

namespace {

/// A field of the record's protocol; `otherwise` where it has none.
template <class T>
T protocol_field(const Measurement& record, const char* field, T otherwise) {
  const auto protocol = core::parse_json(record.protocol, "protocol");
  return protocol && protocol->is_object() ? protocol->value(field, otherwise) : otherwise;
}

/// Where the operators are the same.
void take_lesser_times(const std::vector<measure::OperatorTime>& from,
                       std::vector<measure::OperatorTime>& into) {
  const auto same = [](const auto& a, const auto& b) { return a.name == b.name; };
  if (!std::ranges::equal(from, into, same)) return;
  for (std::size_t i = 0; i < into.size(); ++i) into[i].ms = std::min(into[i].ms, from[i].ms);
}

}  // namespace

bool answers(const Measurement& record, const measure::Protocol& protocol) {
  return record.status != MeasurementStatus::failed && record.latency &&
         (!protocol.operators || protocol_field(record, "operators", false));
}

int sessions_shared_by(const Measurement& record) {
  return std::max(1, protocol_field(record, "sessions", 1));
}

void KnownSessions::add(const Measurement& record) {
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

bool counts(const Measurement& record, const DesignsRequest& request) {
  const bool again =
      request.sessions && request.retry_unstable && record.status == MeasurementStatus::unstable;
  return !again && answers(record, request.protocol);
}

SessionLedger::SessionLedger(const DesignsRequest& request)
    : request_(request),
      sessions_(request.sessions.value_or(kUsualSessions)),
      known_(request.devices.size()) {}

void SessionLedger::take_known(std::size_t device, const std::vector<Measurement>& records) {
  auto& designs = known_[device];
  for (const auto& record : records)
    if (counts(record, request_)) designs[record.model_hash].add(record);
  if (!request_.retry_unstable) return;
  for (auto& [hash, known] : designs)
    if (!known.agree(request_.protocol.target)) known.share = 0;
}

void SessionLedger::take_fresh(const Measurement& measurement) {
  const auto device = std::ranges::find(request_.devices, measurement.device);
  auto& known =
      known_[static_cast<std::size_t>(device - request_.devices.begin())][measurement.model_hash];
  if (answers(measurement, request_.protocol)) {
    known.add(measurement);
  } else {
    known.failed = true;
  }
}

int SessionLedger::missing(const std::string& design, std::size_t device) const {
  const auto found = known_[device].find(design);
  if (found == known_[device].end()) return sessions_;
  const KnownSessions& known = found->second;
  if (known.failed) return 0;
  if (request_.sessions)
    return std::max(0, sessions_ - static_cast<int>(std::ssize(known.median_ms)));
  return known.usual_missing(request_.protocol.target);
}

std::vector<std::string> SessionLedger::devices_without(const std::string& design,
                                                        int sessions) const {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < known_.size(); ++d)
    if (missing(design, d) >= sessions) names.push_back(request_.devices[d]);
  return names;
}

std::size_t SessionLedger::count_missing(const std::string& design) const {
  int all = 0;
  for (std::size_t d = 0; d < known_.size(); ++d) all += missing(design, d);
  return static_cast<std::size_t>(all);
}

std::size_t SessionLedger::count_disagreeing(const std::string& design) const {
  return static_cast<std::size_t>(std::ranges::count_if(known_, [&](const auto& designs) {
    const auto found = designs.find(design);
    return found != designs.end() && !found->second.agree(request_.protocol.target);
  }));
}

Measurement merge_sessions(std::vector<Measurement> sessions, double target) {
  const auto median = [](const auto& record) { return record.latency->median_ms; };
  auto merged = *std::ranges::min_element(sessions, {}, median);
  if (sessions.size() < 2) return merged;
  std::vector<double> medians;
  for (const auto& session : sessions) {
    medians.push_back(session.latency->median_ms);
    take_lesser_times(session.operators, merged.operators);
  }
  const bool agree = fastest_agree(medians, target);
  merged.status = agree ? MeasurementStatus::ok : MeasurementStatus::unstable;
  merged.reason = agree ? ""
                        : fmt::format("of {} sessions no two of the fastest agree within {:.2g} %",
                                      sessions.size(), 200 * target);
  return merged;
}

}  // namespace fleetfit::app
