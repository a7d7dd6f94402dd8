#include <nlohmann/json.hpp>

#include "fleetfit/app/devices.h"
#include "fleetfit/report/words.h"

namespace fleetfit::app {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json to_json(const DeviceSummary& summary) {
  const auto& device = summary.device;
  const nlohmann::json all = measure::to_json(device);
  Json json{{"name", device.name}, {"runtime", device.runtime}};
  for (const char* key : {"runtime_info", "threads", "cores", "precision", "limits", "hardware"}) {
    json[key] = all.at(key);
  }
  json["fingerprint"] = summary.fingerprint;
  json["created"] = summary.created ? Json(report::date_text(*summary.created)) : Json();
  json["change"] = summary.change.empty() ? Json() : Json(summary.change);
  return json;
}

Json to_json(const std::vector<DeviceSummary>& devices) {
  Json list = Json::array();
  for (const auto& device : devices) list.push_back(to_json(device));
  return list;
}

}  // namespace fleetfit::app
