#include "fleetfit/measure/measurement.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "measure/json_fields.h"

namespace fleetfit::measure {
namespace {

using core::JsonView;
using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr int kFormat = 1;

Json interval_json(const core::Interval& interval) { return {interval.low, interval.high}; }

// ISO 8601 in UTC, with milliseconds.
std::string format_date(system_clock::time_point date) {
  const auto since = std::chrono::floor<milliseconds>(date);
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(system_clock::to_time_t(whole)),
                     (since - whole).count());
}

Result<system_clock::time_point> parse_date(const JsonView& json) {
  FLEETFIT_ASSIGN(const auto text, json.as_text());
  constexpr std::string_view kPattern = "0000-00-00T00:00:00.000Z";
  const auto no_date = [&] { return json.error("is not a date such as 2026-01-31T12:00:00.000Z"); };
  if (text.size() != kPattern.size()) return no_date();
  for (std::size_t i = 0; i < kPattern.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kPattern[i] == '0' ? !digit : text[i] != kPattern[i]) return no_date();
  }
  const auto part = [&](std::size_t start, std::size_t length) {
    int value = 0;
    std::from_chars(text.data() + start, text.data() + start + length, value);
    return value;
  };
  namespace ch = std::chrono;
  const ch::year_month_day day{ch::year(part(0, 4)), ch::month(static_cast<unsigned>(part(5, 2))),
                               ch::day(static_cast<unsigned>(part(8, 2)))};
  if (!day.ok() || part(11, 2) > 23 || part(14, 2) > 59 || part(17, 2) > 60) return no_date();
  return ch::sys_days(day) + ch::hours(part(11, 2)) + ch::minutes(part(14, 2)) +
         ch::seconds(part(17, 2)) + milliseconds(part(20, 3));
}

Json latency_json(const std::optional<Latency>& latency) {
  if (!latency) return {};
  return {{"median", latency->median_ms},
          {"mean", latency->mean_ms},
          {"p90", latency->p90_ms},
          {"p99", latency->p99_ms},
          {"ci95", interval_json(latency->ci95_ms)},
          {"session_ci95", interval_json(latency->session_ci95_ms)},
          {"mean_ci95", interval_json(latency->mean_ci95_ms)}};
}

Json energy_json(const std::optional<Energy>& energy) {
  if (!energy) return {};
  return {
      {"value", energy->value_mj}, {"source", to_string(energy->source)}, {"meter", energy->meter}};
}

Json operators_json(const std::vector<OperatorTime>& operators) {
  Json list = Json::array();
  for (const auto& op : operators) {
    list.push_back(
        {{"name", op.name}, {"type", op.type}, {"kernel", op.kernel}, {"latency_ms", op.ms}});
  }
  return list;
}

Status read_interval(const JsonView& json, core::Interval& interval) {
  FLEETFIT_ASSIGN(const auto ends, json.as_numbers());
  if (ends.size() != 2) return json.error("is not a lower and an upper end");
  interval = {ends[0], ends[1]};
  return {};
}

Result<Latency> latency_from(const JsonView& json) {
  Latency latency;
  JsonFields fields(json);
  fields.take(json.number("median"), latency.median_ms);
  fields.take(json.number("mean"), latency.mean_ms);
  fields.take(json.number("p90"), latency.p90_ms);
  fields.take(json.number("p99"), latency.p99_ms);
  if (const auto ends = fields.object("ci95")) fields.note(read_interval(*ends, latency.ci95_ms));
  if (const auto ends = fields.object("session_ci95")) {
    fields.note(read_interval(*ends, latency.session_ci95_ms));
  }
  if (const auto ends = fields.object("mean_ci95")) {
    fields.note(read_interval(*ends, latency.mean_ci95_ms));
  }
  return fields.status().map([&] { return latency; });
}

Result<Energy> energy_from(const JsonView& json) {
  Energy energy;
  JsonFields fields(json);
  fields.take(json.number("value"), energy.value_mj);
  fields.text("meter", energy.meter);
  if (const auto source = json.text("source")) {
    fields.take(parse_energy_source(*source), energy.source);
  } else {
    fields.note(source.error());
  }
  return fields.status().map([&] { return energy; });
}

Result<std::vector<OperatorTime>> operators_from(const JsonView& json) {
  FLEETFIT_ASSIGN(const auto items, json.items());
  std::vector<OperatorTime> operators;
  for (const auto& item : items) {
    OperatorTime op{};
    JsonFields fields(item);
    fields.take(item.text("name"), op.name);
    fields.text("type", op.type);
    fields.text("kernel", op.kernel);
    fields.take(item.number("latency_ms"), op.ms);
    FLEETFIT_TRY(fields.status());
    operators.push_back(std::move(op));
  }
  return operators;
}

Result<MeasurementStatus> status_from(const JsonView& json) {
  FLEETFIT_ASSIGN(const auto text, json.text("status"));
  for (const auto status :
       {MeasurementStatus::ok, MeasurementStatus::unstable, MeasurementStatus::failed}) {
    if (text == to_string(status)) return status;
  }
  return json.error(fmt::format("status: \"{}\" is none of ok, unstable, failed", text));
}

void read_counts(JsonFields& fields, Measurement& m) {
  fields.text("reason", m.reason);
  fields.integer("runs", m.runs);
  fields.integer("warmup_runs", m.warmup_runs);
  fields.integer("outliers", m.outliers);
  fields.boolean("bimodal", m.bimodal);
  fields.boolean("unlike_before", m.unlike_before);
  fields.optional_number("overhead_ms", m.overhead_ms);
  fields.integer("peak_memory_bytes", m.peak_memory_bytes);
  fields.text("kernel_choices", m.kernel_choices);
}

void read_parts(JsonFields& fields, Measurement& m) {
  if (const auto part = fields.object("drift")) {
    JsonFields drift(*part);
    drift.number("relative", m.drift.relative);
    drift.boolean("significant", m.drift.significant);
    fields.note(drift.status());
  }
  if (const auto part = fields.object("latency_ms")) fields.take(latency_from(*part), m.latency);
  if (const auto part = fields.object("energy_mj")) fields.take(energy_from(*part), m.energy);
  if (const auto part = fields.object("ops")) fields.take(operators_from(*part), m.operators);
  if (const auto part = fields.object("notes")) fields.take(part->as_texts(), m.notes);
  if (const auto part = fields.object("conditions")) {
    fields.take(conditions_from_json(*part), m.conditions);
  }
  if (const auto part = fields.object("protocol")) {
    fields.take(protocol_from_json(*part), m.protocol);
  }
  if (const auto part = fields.object("started")) fields.take(parse_date(*part), m.started);
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
  return "failed";
}

Json to_json(const Measurement& m) {
  return {{"format", kFormat},
          {"status", to_string(m.status)},
          {"reason", m.reason},
          {"latency_ms", latency_json(m.latency)},
          {"runs", m.runs},
          {"warmup_runs", m.warmup_runs},
          {"outliers", m.outliers},
          {"drift", {{"relative", m.drift.relative}, {"significant", m.drift.significant}}},
          {"bimodal", m.bimodal},
          {"unlike_before", m.unlike_before},
          {"overhead_ms", m.overhead_ms ? Json(*m.overhead_ms) : Json()},
          {"ops", operators_json(m.operators)},
          {"peak_memory_bytes", m.peak_memory_bytes},
          {"energy_mj", energy_json(m.energy)},
          {"kernel_choices", m.kernel_choices},
          {"notes", m.notes},
          {"conditions", to_json(m.conditions)},
          {"protocol", to_json(m.protocol)},
          {"started", format_date(m.started)}};
}

Result<Measurement> measurement_from_json(const JsonView& json) {
  Measurement m;
  JsonFields fields(json);
  int format = kFormat;
  fields.integer("format", format);
  fields.take(status_from(json), m.status);
  read_counts(fields, m);
  read_parts(fields, m);
  FLEETFIT_TRY(fields.status());
  if (format != kFormat) {
    return json.error(fmt::format("format: {} is not known here, only {}", format, kFormat));
  }
  if (m.status != MeasurementStatus::failed && !m.latency) {
    return json.error("latency_ms: is missing");
  }
  return m;
}

}  // namespace fleetfit::measure
