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

core::Fields fields_of(const KernelChoiceRecord*) {
  static constexpr core::Field kAll[] = {
      field<&KernelChoiceRecord::cpu>("cpu").key(), field<&KernelChoiceRecord::key>("key").key(),
      field<&KernelChoiceRecord::choice>("choice"), field<&KernelChoiceRecord::ms>("ms"),
      field<&KernelChoiceRecord::measured>("measured")};
  return {.what = "kernel choice", .all = kAll};
}

}  // namespace fleetfit::store
