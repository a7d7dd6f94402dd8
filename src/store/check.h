#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/store/fleet_store.h"
#include "fleetfit/store/records.h"
#include "fleetfit/store/study_store.h"

/// Every store checks a record before it writes it, so that all of them refuse the same. Failures
/// are `invalid_input` and name the record and its field.
namespace fleetfit::store {

Status check(const DeviceRecord& device);
Status check(const ModelRecord& model);
Status check(const MeasurementRecord& measurement);
Status check(const KernelChoiceRecord& choice);
Status check(const StudyRecord& study);
Status check(const TrialRecord& trial);
Status check(const InferenceRecord& inference);
Status check(const LevelEnd& end);
Status check(const TrialDecision& decision);

/// Texts that calls write besides records.
Status check_worker(std::string_view worker);
Status check_tuner(std::string_view tuner);
Status check_structure(std::string_view structure, std::string_view model_file);
Status check_stop(std::string_view reason);
Status check_progress(std::string_view progress);
/// What a worker says when it ends a trial: failed, for a reason, or stopped.
Status check_end_by_worker(TrialState state, std::string_view reason);
/// What is added to a study's account.
Status check_spent(double more_s, std::optional<double> more_j);

Status check(const TokenRecord& token);
Status check(const AgentRecord& agent);
Status check(const JobRecord& job);
Status check(const EventRecord& event);
Status check(const FileRecord& file);
Status check(const AuditRecord& entry);
Status check(const JobEnd& end);
Status check(const AgentFilter& filter);
/// The ids, too.
Status check(const FleetRecords& records);
/// What a job is asked to be; the rest of the record does not matter.
Status check_new_job(const JobRecord& job);
Status check_serving(std::string_view serving);

/// The first failure of many.
template <class Records>
Status check_each(const Records& records) {
  for (const auto& record : records)
    if (auto checked = check(record); !checked) return checked;
  return {};
}

}  // namespace fleetfit::store
