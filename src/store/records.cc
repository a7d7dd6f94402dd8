#include "fleetfit/store/records.h"

#include "fleetfit/core/fields.h"

// Fields are described in the order of the columns.
namespace fleetfit::store {

using core::field;

core::Fields fields_of(const DeviceRecord*) {
  static constexpr core::Field kAll[] = {field<&DeviceRecord::name>("name").key(),
                                         field<&DeviceRecord::fingerprint>("fingerprint"),
                                         field<&DeviceRecord::settings>("settings").json_object(),
                                         field<&DeviceRecord::created>("created")};
  return {.what = "device", .all = kAll};
}

core::Fields fields_of(const ModelRecord*) {
  static constexpr core::Field kAll[] = {
      field<&ModelRecord::hash>("hash").key(), field<&ModelRecord::name>("name"),
      field<&ModelRecord::source>("source"), field<&ModelRecord::bytes>("bytes").from(0)};
  return {.what = "model", .all = kAll};
}

core::Fields fields_of(const MeasurementRecord*) {
  using Record = MeasurementRecord;
  static constexpr core::Field kAll[] = {
      field<&Record::id>("id"),
      field<&Record::device>("device").key(),
      field<&Record::device_fingerprint>("device_fingerprint"),
      field<&Record::model_hash>("model_hash"),
      field<&Record::model_name>("model_name"),
      field<&Record::space>("space"),
      field<&Record::design>("design"),
      field<&Record::status>("status"),
      field<&Record::reason>("reason"),
      field<&Record::latency>("latency_ms").inlined(),
      field<&Record::runs>("runs").from(0),
      field<&Record::overhead_ms>("overhead_ms"),
      field<&Record::peak_memory_bytes>("peak_memory_bytes").from(0),
      field<&Record::energy>("energy_mj").inlined(),
      field<&Record::protocol>("protocol").json_object(),
      field<&Record::conditions>("conditions").json_object(),
      field<&Record::started>("started"),
      field<&Record::operators>("ops").in_column("operators").not_stored()};
  return {.what = "measurement", .all = kAll};
}

core::Fields fields_of(const KernelChoiceRecord*) {
  static constexpr core::Field kAll[] = {
      field<&KernelChoiceRecord::cpu>("cpu").key(), field<&KernelChoiceRecord::key>("key").key(),
      field<&KernelChoiceRecord::choice>("choice"), field<&KernelChoiceRecord::ms>("ms"),
      field<&KernelChoiceRecord::measured>("measured")};
  return {.what = "kernel choice", .all = kAll};
}

}  // namespace fleetfit::store
