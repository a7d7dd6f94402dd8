#include "fleetfit/store/study_records.h"

#include "fleetfit/core/fields.h"

// Fields are described in the order of the columns.
namespace fleetfit::store {

using core::field;

core::Names names_of(TrialState) {
  static constexpr core::Name kAll[] = {
      {TrialState::queued, "queued"},   {TrialState::running, "running"},
      {TrialState::paused, "paused"},   {TrialState::finished, "finished"},
      {TrialState::stopped, "stopped"}, {TrialState::failed, "failed"}};
  return {.what = "state of a trial", .all = kAll};
}

bool has_ended(TrialState state) {
  return state == TrialState::finished || state == TrialState::stopped ||
         state == TrialState::failed;
}

core::Fields fields_of(const StudyRecord*) {
  static constexpr core::Field kAll[] = {field<&StudyRecord::name>("name").key(),
                                         field<&StudyRecord::definition>("definition"),
                                         field<&StudyRecord::seed>("seed"),
                                         field<&StudyRecord::done>("done"),
                                         field<&StudyRecord::created>("created"),
                                         field<&StudyRecord::tuning_s>("tuning_s").from(0),
                                         field<&StudyRecord::tuning_j>("tuning_j").from(0)};
  return {.what = "study", .all = kAll};
}

core::Fields fields_of(const LevelRecord*) {
  using Record = LevelRecord;
  static constexpr core::Field kAll[] = {
      field<&Record::level>("level").from(0),
      field<&Record::epochs>("epochs").from(0),
      field<&Record::data_fraction>("data_fraction").between(0, 1),
      field<&Record::accuracy>("accuracy"),
      field<&Record::loss>("loss"),
      field<&Record::training_s>("training_s").from(0),
      field<&Record::training_j>("training_j").from(0),
      field<&Record::metrics>("metrics").json_object(),
      field<&Record::epoch_values>("epoch_values").json_list(),
      field<&Record::worker>("worker"),
      field<&Record::started>("started"),
      field<&Record::ended>("ended")};
  return {.what = "level", .all = kAll};
}

core::Fields fields_of(const TrialRecord*) {
  using Record = TrialRecord;
  static constexpr core::Field kAll[] = {field<&Record::number>("number").from(0).constant(),
                                         field<&Record::params>("params").json_object().constant(),
                                         field<&Record::bracket>("bracket").from(0).constant(),
                                         field<&Record::level>("level").from(0),
                                         field<&Record::state>("state"),
                                         field<&Record::reason>("reason"),
                                         field<&Record::structure>("structure"),
                                         field<&Record::model_file>("model_file"),
                                         field<&Record::attempts>("attempts").from(0),
                                         field<&Record::worker>("worker"),
                                         field<&Record::lease_until>("lease_until"),
                                         field<&Record::stop_requested>("stop_requested"),
                                         field<&Record::progress>("progress"),
                                         field<&Record::score>("score"),
                                         field<&Record::change>("change")};
  return {.what = "trial", .all = kAll};
}

core::Fields fields_of(const TrialCounts*) {
  static constexpr core::Field kAll[] = {
      field<&TrialCounts::queued>("queued"),   field<&TrialCounts::running>("running"),
      field<&TrialCounts::paused>("paused"),   field<&TrialCounts::finished>("finished"),
      field<&TrialCounts::stopped>("stopped"), field<&TrialCounts::failed>("failed")};
  return {.what = "counts", .all = kAll};
}

core::Fields fields_of(const InferenceRecord*) {
  using Record = InferenceRecord;
  static constexpr core::Field kAll[] = {
      field<&Record::structure>("structure").key(),
      field<&Record::device_fingerprint>("device_fingerprint").key(),
      field<&Record::question>("question").key(),
      field<&Record::device>("device"),
      field<&Record::result>("result").json_object(),
      field<&Record::failed>("failed"),
      field<&Record::elapsed_s>("elapsed_s").from(0),
      field<&Record::study>("study"),
      field<&Record::found>("found")};
  return {.what = "inference", .all = kAll};
}

}  // namespace fleetfit::store
