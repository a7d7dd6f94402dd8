#include "fleetfit/measure/protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/core/fields.h"

namespace fleetfit::measure {

using core::field;

namespace {

constexpr int kLeastRuns = 6;
constexpr int kMostSessions = 1000;
constexpr double kDaySeconds = 86'400;

Status check_runs(const Protocol& p) {
  if (p.max_runs >= p.min_runs) return {};
  return refuse(fmt::format("max_runs: {} is less than min_runs, {}", p.max_runs, p.min_runs));
}

}  // namespace

Protocol protocol_within(double max_time_s) {
  Protocol protocol{.max_time_s = max_time_s};
  protocol.min_time_s = std::min(protocol.min_time_s, max_time_s / 2);
  return protocol;
}

Protocol one_of_sessions(Protocol protocol, int sessions) {
  protocol.sessions = sessions;
  protocol.max_time_s /= sessions;
  protocol.min_time_s /= sessions;
  return protocol;
}

core::Fields fields_of(const Protocol*) {
  static constexpr core::Field kAll[] = {
      field<&Protocol::target>("target").between(1e-4, 1).may_be_missing(),
      field<&Protocol::max_warmup_s>("max_warmup_s").between(0, kDaySeconds).may_be_missing(),
      field<&Protocol::min_time_s>("min_time_s").between(0, kDaySeconds).may_be_missing(),
      field<&Protocol::mean_time_s>("mean_time_s").between(0, kDaySeconds).may_be_missing(),
      field<&Protocol::max_time_s>("max_time_s").between(1e-3, kDaySeconds).may_be_missing(),
      field<&Protocol::min_runs>("min_runs").between(kLeastRuns, 1e6).may_be_missing(),
      field<&Protocol::max_runs>("max_runs").between(kLeastRuns, 1e6).may_be_missing(),
      field<&Protocol::request_ms>("request_ms").between(0, 60'000).may_be_missing(),
      field<&Protocol::operators>("operators").may_be_missing(),
      // Agents of older versions know neither pauses nor sessions, and are asked for none but here.
      field<&Protocol::pause_ms>("pause_ms").between(0, 60'000).may_be_missing().omit_default(),
      field<&Protocol::sessions>("sessions")
          .between(1, kMostSessions)
          .may_be_missing()
          .omit_default()};
  return {.what = "protocol",
          .all = kAll,
          .others = core::OtherKeys::refused,
          .rule = core::rule_by<Protocol, check_runs>};
}

Status check(const Protocol& protocol) { return core::check(protocol); }

}  // namespace fleetfit::measure
