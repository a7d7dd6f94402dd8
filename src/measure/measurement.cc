#include "fleetfit/measure/measurement.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/core/fields.h"

namespace fleetfit::measure {

using core::field;
using core::JsonView;

namespace {

constexpr std::int64_t kMeasurementFormat = 1;

Status check_measurement_format(const JsonView& view) {
  FLEETFIT_ASSIGN(const auto found, view.find("format"));
  if (!found) return {};
  FLEETFIT_ASSIGN(const auto format, found->as_integer());
  if (format == kMeasurementFormat) return {};
  return found->error(fmt::format("{} is not known here, only {}", format, kMeasurementFormat));
}

Result<Protocol> protocol_in(const JsonView& view) {
  FLEETFIT_ASSIGN(const auto found, view.find("protocol"));
  return found ? core::read<Protocol>(*found) : Protocol{};
}

}  // namespace

core::Fields fields_of(const Drift*) {
  static constexpr core::Field kAll[] = {
      field<&Drift::relative>("relative").may_be_missing(),
      field<&Drift::significant>("significant").may_be_missing()};
  return {.what = "drift", .all = kAll};
}

core::Fields fields_of(const Circumstances*) {
  using C = Circumstances;
  static constexpr core::Field kAll[] = {field<&C::warmup_runs>("warmup_runs").may_be_missing(),
                                         field<&C::outliers>("outliers").may_be_missing(),
                                         field<&C::drift>("drift").may_be_missing(),
                                         field<&C::bimodal>("bimodal").may_be_missing(),
                                         field<&C::unlike_before>("unlike_before").may_be_missing(),
                                         field<&C::notes>("notes").may_be_missing(),
                                         field<&C::conditions>("conditions").may_be_missing()};
  return {.what = "circumstances", .all = kAll};
}

// In the text they stand beside the conditions; in messages the conditions are one of them.
Circumstances circumstances_of(const Measurement& measurement) {
  const auto json = core::parse_json(measurement.conditions, "conditions");
  if (!json) return {};
  const JsonView view(*json, "conditions");
  auto circumstances = core::read<Circumstances>(view);
  if (!circumstances || !core::read(view, circumstances->conditions)) return {};
  return *std::move(circumstances);
}

void keep_circumstances(Measurement& measurement, const Circumstances& circumstances) {
  auto all = core::to_json<nlohmann::json>(circumstances);
  auto json = std::exchange(all["conditions"], nullptr);
  all.erase("conditions");
  json.update(all);
  if (const auto& latency = measurement.latency)
    json["session_ci95_ms"] = {latency->session_ci95_ms.low, latency->session_ci95_ms.high};
  measurement.conditions = core::format_json_line(json);
}

Measurement failed_measurement(const Protocol& protocol, const core::Clock& clock,
                               std::string reason) {
  Measurement failed{.status = MeasurementStatus::failed,
                     .reason = std::move(reason),
                     .protocol = core::format_json_line(core::to_json<nlohmann::json>(protocol)),
                     .started = std::chrono::floor<std::chrono::milliseconds>(clock.date())};
  keep_circumstances(failed, {});
  return failed;
}

nlohmann::json to_json(const Measurement& measurement) {
  auto json = core::to_json<nlohmann::json>(measurement);
  json.update(core::to_json<nlohmann::json>(circumstances_of(measurement)));
  return json;
}

Result<Measurement> measurement_from_json(const JsonView& json) {
  FLEETFIT_TRY(check_measurement_format(json));
  FLEETFIT_ASSIGN(auto measurement, core::read<Measurement>(json));
  if (measurement.status != MeasurementStatus::failed && !measurement.latency)
    return json.error("latency_ms: is missing");
  FLEETFIT_ASSIGN(const auto protocol, protocol_in(json));
  measurement.protocol = core::format_json_line(core::to_json<nlohmann::json>(protocol));
  FLEETFIT_ASSIGN(const auto circumstances, core::read<Circumstances>(json));
  keep_circumstances(measurement, circumstances);
  measurement.id = 0;
  measurement.space.reset();
  measurement.design.reset();
  return measurement;
}

}  // namespace fleetfit::measure
