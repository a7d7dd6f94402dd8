#include <nlohmann/json.hpp>

#include "fleetfit/adapt/serving.h"
#include "fleetfit/core/json.h"

namespace fleetfit::adapt {
namespace {

std::string_view name_of(ServingEventKind kind) {
  switch (kind) {
    case ServingEventKind::started:
      return "started";
    case ServingEventKind::switched:
      return "switch";
    case ServingEventKind::nothing_fits:
      return "nothing fits";
    case ServingEventKind::searched:
      return "new pool";
    case ServingEventKind::search_failed:
      return "search failed";
    case ServingEventKind::prepare_failed:
      return "prepare failed";
  }
  return "";
}

}  // namespace

std::string to_json_line(const ServingEvent& event) {
  nlohmann::json json = {{"event", name_of(event.kind)}, {"time", event.time_s}};
  if (!event.from.empty()) json["from"] = event.from;
  if (!event.to.empty()) json["to"] = event.to;
  if (!event.reason.empty()) json["reason"] = event.reason;
  const bool is_switch = event.kind == ServingEventKind::switched;
  if (is_switch || event.kind == ServingEventKind::nothing_fits) json["ratio"] = event.ratio;
  if (is_switch) {
    json["switch_us"] = event.switch_us;
    json["prepared"] = event.prepared;
  }
  return core::format_json_line(json);
}

}  // namespace fleetfit::adapt
