#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/document_format.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/json.h"
#include "fleetfit/transfer/adaproxy.h"

namespace fleetfit::transfer {
namespace {

using core::JsonView;

constexpr std::string_view kFormat = "fleetfit-adapted";
constexpr int kVersion = 1;

Status check_space(const JsonView& json, const space::Space& space) {
  FLEETFIT_ASSIGN(const auto name, json.text("space"));
  FLEETFIT_ASSIGN(const auto version, json.integer("space_version"));
  if (name != space.name())
    return json.error(fmt::format("made for the space {}, not for {}", name, space.name()));
  if (version == space.version()) return {};
  return json.error(fmt::format("made for version {} of the space {}, which is now at {}", version,
                                name, space.version()));
}

}  // namespace

core::Fields fields_of(const OperatorChange*) {
  static constexpr core::Field kAll[] = {
      core::field<&OperatorChange::name>("name"),
      core::field<&OperatorChange::columns>("columns").up_to(1e9),
      FLEETFIT_MEMBERS(OperatorChange, live_only, change_ms)};
  return {.all = kAll};
}

core::Fields fields_of(const AdaptReport*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(AdaptReport, proxy, target, measurements, lambda, held_out_srcc, proxy_srcc,
                       keeps_proxy),
      core::field<&AdaptReport::changes>("changed_operators")};
  return {.all = kAll};
}

core::Fields fields_of(const OperatorPrices*) {
  static constexpr core::Field kAll[] = {FLEETFIT_MEMBERS(OperatorPrices, constant, placed, live)};
  return {.all = kAll};
}

core::Fields fields_of(const AdaptedProxy::Parts*) {
  using Parts = AdaptedProxy::Parts;
  static constexpr core::Field kAll[] = {
      core::field<&Parts::scale>("alpha"), core::field<&Parts::prices>("prices").inlined(),
      core::field<&Parts::proxy_ms>("proxy_ms"), core::field<&Parts::report>("report").inlined()};
  return {.all = kAll};
}

Status write_adapted(const AdaptedProxy& adapted, const std::filesystem::path& path) {
  auto json = core::to_json<nlohmann::json>(adapted.parts());
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["space"] = adapted.space().name();
  json["space_version"] = adapted.space().version();
  return core::write_json(path, json);
}

Result<AdaptedProxy> adapted_from_json(const JsonView& json, const space::Space& space) {
  FLEETFIT_TRY(core::check_format(json, kFormat, kVersion));
  FLEETFIT_TRY(check_space(json, space));
  FLEETFIT_ASSIGN(auto parts, core::read<AdaptedProxy::Parts>(json));
  parts.space = &space;
  auto adapted = AdaptedProxy::make(std::move(parts));
  if (!adapted) return json.error(adapted.error().message);
  return adapted;
}

Result<AdaptedProxy> load_adapted(const std::filesystem::path& path, const space::Space& space) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(path));
  return adapted_from_json(JsonView(document, path.string()), space);
}

}  // namespace fleetfit::transfer
