#include "fleetfit/store/fleet_records.h"

#include "fleetfit/core/fields.h"
#include "fleetfit/store/fleet_store.h"

// Fields are described in the order of the columns.
namespace fleetfit::store {

using core::field;

core::Names names_of(Role) {
  static constexpr core::Name kAll[] = {
      {Role::admin, "admin"}, {Role::viewer, "viewer"}, {Role::agent, "agent"}};
  return {.what = "role", .all = kAll};
}

core::Names names_of(JobState) {
  static constexpr core::Name kAll[] = {{JobState::waiting, "waiting"},
                                        {JobState::running, "running"},
                                        {JobState::finished, "finished"},
                                        {JobState::failed, "failed"},
                                        {JobState::cancelled, "cancelled"}};
  return {.what = "state of a job", .all = kAll};
}

core::Fields fields_of(const TokenRecord*) {
  static constexpr core::Field kAll[] = {field<&TokenRecord::id>("id"),
                                         field<&TokenRecord::name>("name"),
                                         field<&TokenRecord::role>("role"),
                                         field<&TokenRecord::hash>("hash").hash(),
                                         field<&TokenRecord::device>("device"),
                                         field<&TokenRecord::created>("created"),
                                         field<&TokenRecord::expires>("expires"),
                                         field<&TokenRecord::revoked>("revoked"),
                                         field<&TokenRecord::devices>("devices").from(0)};
  return {.what = "token", .all = kAll};
}

core::Fields fields_of(const AgentRecord*) {
  static constexpr core::Field kAll[] = {field<&AgentRecord::name>("name").key(),
                                         field<&AgentRecord::version>("version"),
                                         field<&AgentRecord::hardware>("hardware"),
                                         field<&AgentRecord::probe>("probe").json_object(),
                                         field<&AgentRecord::serving>("serving").json_object(),
                                         field<&AgentRecord::created>("created"),
                                         field<&AgentRecord::last_seen>("last_seen"),
                                         field<&AgentRecord::token>("token").from(0)};
  return {.what = "agent", .all = kAll};
}

core::Fields fields_of(const JobRecord*) {
  using Record = JobRecord;
  static constexpr core::Field kAll[] = {
      field<&Record::id>("id").constant(),
      field<&Record::agent>("agent").key().constant(),
      field<&Record::kind>("kind").key().constant(),
      field<&Record::request>("request").json_object().constant(),
      field<&Record::limits>("limits").json_object().constant(),
      field<&Record::key>("key").null_default().constant(),
      field<&Record::state>("state"),
      field<&Record::reason>("reason"),
      field<&Record::attempt>("attempt").from(0),
      field<&Record::most_attempts>("most_attempts").from(1).constant(),
      field<&Record::lease>("lease"),
      field<&Record::cancel_requested>("cancel_requested"),
      field<&Record::result>("result").json_object(),
      field<&Record::created>("created").constant(),
      field<&Record::started>("started"),
      field<&Record::ended>("ended")};
  return {.what = "job", .all = kAll};
}

core::Fields fields_of(const JobCounts*) {
  static constexpr core::Field kAll[] = {
      field<&JobCounts::waiting>("waiting"), field<&JobCounts::running>("running"),
      field<&JobCounts::finished>("finished"), field<&JobCounts::failed>("failed"),
      field<&JobCounts::cancelled>("cancelled")};
  return {.what = "counts", .all = kAll};
}

core::Fields fields_of(const EventRecord*) {
  static constexpr core::Field kAll[] = {field<&EventRecord::id>("id"),
                                         field<&EventRecord::agent>("agent"),
                                         field<&EventRecord::sequence>("sequence").from(0),
                                         field<&EventRecord::job>("job"),
                                         field<&EventRecord::kind>("kind").key(),
                                         field<&EventRecord::body>("body").json_object(),
                                         field<&EventRecord::time>("time"),
                                         field<&EventRecord::device_time>("device_time")};
  return {.what = "event", .all = kAll};
}

core::Fields fields_of(const FileRecord*) {
  static constexpr core::Field kAll[] = {
      field<&FileRecord::hash>("hash").hash(), field<&FileRecord::name>("name"),
      field<&FileRecord::kind>("kind").key(), field<&FileRecord::bytes>("bytes").from(0),
      field<&FileRecord::created>("created")};
  return {.what = "file", .all = kAll};
}

core::Fields fields_of(const AuditRecord*) {
  static constexpr core::Field kAll[] = {
      field<&AuditRecord::id>("id"),         field<&AuditRecord::token>("token").from(0),
      field<&AuditRecord::name>("name"),     field<&AuditRecord::action>("action").key(),
      field<&AuditRecord::detail>("detail"), field<&AuditRecord::time>("time")};
  return {.what = "audit", .all = kAll};
}

}  // namespace fleetfit::store
