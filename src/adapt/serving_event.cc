#include <nlohmann/json.hpp>

#include "fleetfit/adapt/serving.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/names.h"

namespace fleetfit::adapt {
namespace {

std::string_view name_of(ServingEventKind kind) {
  static constexpr core::Name kAll[] = {{ServingEventKind::started, "started"},
                                        {ServingEventKind::switched, "switch"},
                                        {ServingEventKind::nothing_fits, "nothing fits"},
                                        {ServingEventKind::searched, "new pool"},
                                        {ServingEventKind::search_failed, "search failed"},
                                        {ServingEventKind::prepare_failed, "prepare failed"}};
  return core::Names{.all = kAll}.of(static_cast<std::int64_t>(kind));
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
