#include "fleetfit/records/measurement.h"

#include "fleetfit/core/fields.h"

namespace fleetfit::records {

using core::field;

core::Names names_of(MeasurementStatus) {
  static constexpr core::Name kAll[] = {{MeasurementStatus::ok, "ok"},
                                        {MeasurementStatus::unstable, "unstable"},
                                        {MeasurementStatus::failed, "failed"}};
  return {.what = "status of a measurement", .all = kAll};
}

core::Names names_of(EnergySource) {
  static constexpr core::Name kAll[] = {{EnergySource::measured, "measured"},
                                        {EnergySource::modelled, "modelled"}};
  return {.what = "source of energy", .all = kAll};
}

core::Fields fields_of(const Latency*) {
  static constexpr core::Field kAll[] = {
      field<&Latency::median_ms>("median").in_column("median_ms"),
      field<&Latency::mean_ms>("mean").in_column("mean_ms"),
      field<&Latency::p90_ms>("p90").in_column("p90_ms"),
      field<&Latency::p99_ms>("p99").in_column("p99_ms"),
      field<&Latency::ci95_ms>("ci95").in_column("ci95_low_ms, ci95_high_ms").may_be_missing(),
      field<&Latency::session_ci95_ms>("session_ci95").may_be_missing().omit_default().not_stored(),
      field<&Latency::mean_ci95_ms>("mean_ci95").may_be_missing().omit_default().not_stored()};
  return {.what = "latency", .all = kAll};
}

core::Fields fields_of(const Energy*) {
  static constexpr core::Field kAll[] = {
      field<&Energy::mj>("value").in_column("energy_mj"),
      field<&Energy::source>("source").in_column("energy_source"),
      field<&Energy::meter>("meter").may_be_missing().omit_default().not_stored()};
  return {.what = "energy", .all = kAll};
}

core::Fields fields_of(const OperatorTime*) {
  static constexpr core::Field kAll[] = {field<&OperatorTime::name>("name"),
                                         field<&OperatorTime::type>("type").may_be_missing(),
                                         field<&OperatorTime::kernel>("kernel").may_be_missing(),
                                         field<&OperatorTime::ms>("latency_ms").in_column("ms")};
  return {.what = "operator", .all = kAll};
}

core::Fields fields_of(const Measurement*) {
  using M = Measurement;
  static constexpr core::Field kAll[] = {
      field<&M::id>("id").may_be_missing(),
      field<&M::model_name>("model").in_column("model_name"),
      field<&M::model_hash>("hash").in_column("model_hash"),
      field<&M::device>("device").key(),
      field<&M::device_fingerprint>("device_fingerprint"),
      field<&M::space>("space"),
      field<&M::design>("design"),
      field<&M::status>("status"),
      field<&M::reason>("reason").may_be_missing(),
      field<&M::latency>("latency_ms"),
      field<&M::runs>("runs").from(0).may_be_missing(),
      field<&M::overhead_ms>("overhead_ms"),
      field<&M::peak_memory_bytes>("peak_memory_bytes").from(0),
      field<&M::energy>("energy_mj"),
      field<&M::protocol>("protocol").json_object().may_be_missing(),
      field<&M::conditions>("conditions").json_object().may_be_missing(),
      field<&M::started>("started").may_be_missing(),
      field<&M::operators>("ops")
          .in_column("operators")
          .may_be_missing()
          .omit_default()
          .not_stored()};
  return {.what = "measurement", .all = kAll};
}

}  // namespace fleetfit::records
