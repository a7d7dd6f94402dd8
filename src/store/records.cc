#include "fleetfit/store/records.h"

#include <fmt/format.h>

#include "fleetfit/store/fleet_records.h"
#include "fleetfit/store/study_records.h"

namespace fleetfit::store {
namespace {

template <class Enum, std::size_t count>
Result<Enum> parse(const Enum (&values)[count], std::string_view name, std::string_view what) {
  for (const Enum value : values)
    if (to_string(value) == name) return value;
  return fail(ErrorCode::invalid_input, fmt::format("'{}' is no {}", name, what));
}

}  // namespace

std::string_view to_string(MeasurementStatus status) {
  switch (status) {
    case MeasurementStatus::ok:
      return "ok";
    case MeasurementStatus::unstable:
      return "unstable";
    case MeasurementStatus::failed:
      return "failed";
  }
  return "";
}

std::string_view to_string(EnergySource source) {
  switch (source) {
    case EnergySource::measured:
      return "measured";
    case EnergySource::modelled:
      return "modelled";
  }
  return "";
}

std::string_view to_string(TrialState state) {
  switch (state) {
    case TrialState::queued:
      return "queued";
    case TrialState::running:
      return "running";
    case TrialState::paused:
      return "paused";
    case TrialState::finished:
      return "finished";
    case TrialState::stopped:
      return "stopped";
    case TrialState::failed:
      return "failed";
  }
  return "";
}

std::string_view to_string(Role role) {
  switch (role) {
    case Role::admin:
      return "admin";
    case Role::viewer:
      return "viewer";
    case Role::agent:
      return "agent";
  }
  return "";
}

std::string_view to_string(JobState state) {
  switch (state) {
    case JobState::waiting:
      return "waiting";
    case JobState::running:
      return "running";
    case JobState::finished:
      return "finished";
    case JobState::failed:
      return "failed";
    case JobState::cancelled:
      return "cancelled";
  }
  return "";
}

bool has_ended(TrialState state) {
  return state == TrialState::finished || state == TrialState::stopped ||
         state == TrialState::failed;
}

Result<MeasurementStatus> parse_measurement_status(std::string_view name) {
  constexpr MeasurementStatus kAll[] = {MeasurementStatus::ok, MeasurementStatus::unstable,
                                        MeasurementStatus::failed};
  return parse(kAll, name, "status of a measurement (ok, unstable, failed)");
}

Result<EnergySource> parse_energy_source(std::string_view name) {
  constexpr EnergySource kAll[] = {EnergySource::measured, EnergySource::modelled};
  return parse(kAll, name, "source of energy (measured, modelled)");
}

Result<TrialState> parse_trial_state(std::string_view name) {
  constexpr TrialState kAll[] = {TrialState::queued,   TrialState::running, TrialState::paused,
                                 TrialState::finished, TrialState::stopped, TrialState::failed};
  return parse(kAll, name, "state of a trial (queued, running, paused, finished, stopped, failed)");
}

Result<Role> parse_role(std::string_view name) {
  constexpr Role kAll[] = {Role::admin, Role::viewer, Role::agent};
  return parse(kAll, name, "role (admin, viewer, agent)");
}

Result<JobState> parse_job_state(std::string_view name) {
  constexpr JobState kAll[] = {JobState::waiting, JobState::running, JobState::finished,
                               JobState::failed, JobState::cancelled};
  return parse(kAll, name, "state of a job (waiting, running, finished, failed, cancelled)");
}

}  // namespace fleetfit::store
