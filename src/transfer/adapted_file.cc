#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/json.h"
#include "fleetfit/transfer/adaproxy.h"

namespace fleetfit::transfer {
namespace {

using core::JsonView;

constexpr std::string_view kFormat = "fleetfit-adapted";
constexpr int kVersion = 1;

nlohmann::json changes_json(const AdaptReport& report) {
  auto changes = nlohmann::json::array();
  for (const auto& change : report.changes) {
    changes.push_back({{"name", change.name},
                       {"columns", change.columns},
                       {"live_only", change.live_only},
                       {"change_ms", change.change_ms}});
  }
  return changes;
}

nlohmann::json to_json(const AdaptedProxy& adapted) {
  const auto& parts = adapted.parts();
  const auto& report = parts.report;
  return {{"format", kFormat},
          {"version", kVersion},
          {"space", parts.space->name()},
          {"space_version", parts.space->version()},
          {"proxy", report.proxy},
          {"target", report.target},
          {"measurements", report.measurements},
          {"lambda", report.lambda},
          {"held_out_srcc", report.held_out_srcc},
          {"proxy_srcc", report.proxy_srcc},
          {"keeps_proxy", report.keeps_proxy},
          {"changed_operators", changes_json(report)},
          {"alpha", parts.scale},
          {"constant", parts.prices.constant},
          {"placed", parts.prices.placed},
          {"live", parts.prices.live},
          {"proxy_ms", parts.proxy_ms}};
}

Status check_kind(const JsonView& json) {
  FLEETFIT_ASSIGN(const auto format, json.text("format"));
  if (format != kFormat)
    return json.error(fmt::format("format is '{}', expected '{}'", format, kFormat));
  FLEETFIT_ASSIGN(const auto version, json.integer("version", {.min = 1}));
  if (version > kVersion)
    return json.error(fmt::format("version {} is newer than this program knows", version));
  return {};
}

Status check_space(const JsonView& json, const space::Space& space) {
  FLEETFIT_ASSIGN(const auto name, json.text("space"));
  FLEETFIT_ASSIGN(const auto version, json.integer("space_version"));
  if (name != space.name())
    return json.error(fmt::format("made for the space {}, not for {}", name, space.name()));
  if (version == space.version()) return {};
  return json.error(fmt::format("made for version {} of the space {}, which is now at {}", version,
                                name, space.version()));
}

Result<OperatorChange> read_change(const JsonView& json) {
  auto name = json.text("name");
  const auto columns = json.numbers("columns");
  const auto live_only = json.boolean("live_only");
  const auto change_ms = json.number("change_ms");
  FLEETFIT_TRY(name);
  FLEETFIT_TRY(columns);
  FLEETFIT_TRY(live_only);
  FLEETFIT_TRY(change_ms);
  OperatorChange change{.name = *std::move(name), .live_only = *live_only, .change_ms = *change_ms};
  for (const double column : *columns) {
    if (column < 0 || column > 1e9) return json.error("columns: no such column");
    change.columns.push_back(static_cast<std::size_t>(column));
  }
  return change;
}

Status read_changes(const JsonView& json, AdaptReport& report) {
  FLEETFIT_ASSIGN(const auto items, json.items("changed_operators"));
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(auto change, read_change(item));
    report.changes.push_back(std::move(change));
  }
  return {};
}

Result<AdaptReport> read_report(const JsonView& json) {
  const auto proxy = json.text("proxy");
  const auto target = json.text("target");
  const auto measurements = json.integer("measurements", {.min = 0});
  const auto lambda = json.number("lambda");
  const auto held_out = json.number("held_out_srcc");
  const auto before = json.number("proxy_srcc");
  const auto keeps = json.boolean("keeps_proxy");
  for (const auto* text : {&proxy, &target}) FLEETFIT_TRY(*text);
  FLEETFIT_TRY(measurements);
  for (const auto* number : {&lambda, &held_out, &before}) FLEETFIT_TRY(*number);
  FLEETFIT_TRY(keeps);
  AdaptReport report{.proxy = *proxy,
                     .target = *target,
                     .measurements = static_cast<std::size_t>(*measurements),
                     .lambda = *lambda,
                     .held_out_srcc = *held_out,
                     .proxy_srcc = *before,
                     .keeps_proxy = *keeps};
  FLEETFIT_TRY(read_changes(json, report));
  return report;
}

Result<AdaptedProxy::Parts> read_parts(const JsonView& json, const space::Space& space) {
  FLEETFIT_ASSIGN(auto report, read_report(json));
  const auto alpha = json.number("alpha");
  const auto constant = json.number("constant");
  for (const auto* number : {&alpha, &constant}) FLEETFIT_TRY(*number);
  auto placed = json.numbers("placed");
  auto live = json.numbers("live");
  auto proxy_ms = json.numbers("proxy_ms");
  for (const auto* numbers : {&placed, &live, &proxy_ms}) FLEETFIT_TRY(*numbers);
  return AdaptedProxy::Parts{
      .space = &space,
      .scale = *alpha,
      .prices = {.constant = *constant, .placed = *std::move(placed), .live = *std::move(live)},
      .proxy_ms = *std::move(proxy_ms),
      .report = std::move(report)};
}

}  // namespace

Status write_adapted(const AdaptedProxy& adapted, const std::filesystem::path& path) {
  return core::write_json(path, to_json(adapted));
}

Result<AdaptedProxy> adapted_from_json(const JsonView& json, const space::Space& space) {
  FLEETFIT_TRY(check_kind(json));
  FLEETFIT_TRY(check_space(json, space));
  FLEETFIT_ASSIGN(auto parts, read_parts(json, space));
  auto adapted = AdaptedProxy::make(std::move(parts));
  if (!adapted) return json.error(adapted.error().message);
  return adapted;
}

Result<AdaptedProxy> load_adapted(const std::filesystem::path& path, const space::Space& space) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(path));
  return adapted_from_json(JsonView(document, path.string()), space);
}

}  // namespace fleetfit::transfer
