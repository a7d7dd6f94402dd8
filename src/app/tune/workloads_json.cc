#include <nlohmann/json.hpp>

#include "fleetfit/app/workloads.h"
#include "fleetfit/core/json.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;
using workloads::Setting;
using workloads::SettingKind;
using workloads::Workload;

Json summary_json(const Workload& workload) {
  return {{"name", workload.name},
          {"summary", workload.summary},
          {"data", workload.data_needed},
          {"accuracy", workload.accuracy}};
}

Json setting_json(const Setting& setting) {
  const bool is_text = setting.kind == SettingKind::text;
  const bool is_whole = setting.kind == SettingKind::integer;
  Json json{{"name", setting.name},
            {"group", setting.group},
            {"type", is_text ? "text" : (is_whole ? "integer" : "number")}};
  json["default"] = is_text ? Json(setting.preset_text) : Json(setting.preset);
  if (is_whole) json["default"] = static_cast<std::int64_t>(setting.preset);
  if (!is_text) json["min"] = setting.min;
  if (!is_text) json["max"] = setting.max;
  if (!setting.choices.empty()) json["choices"] = setting.choices;
  json["summary"] = setting.summary;
  return json;
}

}  // namespace

Json workloads_json(std::span<const Workload> all) { return core::json_list(all, summary_json); }

Json workload_json(const Workload& workload) {
  auto json = summary_json(workload);
  json["parameters"] = core::json_list(workload.settings, setting_json);
  json["study"] = workloads::example_study(workload);
  return json;
}

}  // namespace fleetfit::app
