#include "fleetfit/measure/measurement.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/fields.h"

namespace fleetfit::measure {

using core::field;
using core::JsonView;

namespace {

constexpr std::int64_t kMeasurementFormat = 1;

Status read_measurement_format(const JsonView& view, Measurement&) {
  FLEETFIT_ASSIGN(const auto format, view.as_integer());
  if (format == kMeasurementFormat) return {};
  return view.error(fmt::format("{} is not known here, only {}", format, kMeasurementFormat));
}
std::int64_t measurement_format_of(const Measurement&) { return kMeasurementFormat; }

Status check_latency(const Measurement& m) {
  if (m.status == MeasurementStatus::failed || m.latency) return {};
  return refuse("latency_ms: is missing");
}

}  // namespace

core::Fields fields_of(const Drift*) {
  static constexpr core::Field kAll[] = {
      field<&Drift::relative>("relative").may_be_missing(),
      field<&Drift::significant>("significant").may_be_missing()};
  return {.what = "drift", .all = kAll};
}

core::Fields fields_of(const Measurement*) {
  using M = Measurement;
  static constexpr core::Field kAll[] = {
      core::field_by<M, read_measurement_format, measurement_format_of>("format").may_be_missing(),
      field<&M::status>("status"),
      field<&M::reason>("reason").may_be_missing(),
      field<&M::latency>("latency_ms"),
      field<&M::runs>("runs").may_be_missing(),
      field<&M::warmup_runs>("warmup_runs").may_be_missing(),
      field<&M::outliers>("outliers").may_be_missing(),
      field<&M::drift>("drift").may_be_missing(),
      field<&M::bimodal>("bimodal").may_be_missing(),
      field<&M::unlike_before>("unlike_before").may_be_missing(),
      field<&M::overhead_ms>("overhead_ms"),
      field<&M::operators>("ops").may_be_missing(),
      field<&M::peak_memory_bytes>("peak_memory_bytes").may_be_missing(),
      field<&M::energy>("energy_mj"),
      field<&M::kernel_choices>("kernel_choices").may_be_missing(),
      field<&M::notes>("notes").may_be_missing(),
      field<&M::conditions>("conditions").may_be_missing(),
      field<&M::protocol>("protocol").may_be_missing(),
      field<&M::started>("started").may_be_missing()};
  return {.what = "measurement", .all = kAll, .rule = core::rule_by<M, check_latency>};
}

nlohmann::json to_json(const Measurement& measurement) {
  return core::to_json<nlohmann::json>(measurement);
}

Result<Measurement> measurement_from_json(const JsonView& json) {
  return core::read<Measurement>(json);
}

}  // namespace fleetfit::measure
