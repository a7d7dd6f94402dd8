#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/document_format.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/learned/model.h"

namespace fleetfit::learned {
namespace {

using core::JsonView;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "fleetfit-learned";
constexpr int kVersion = 2;  // 1: without risks

ordered_json cost_members(const CostModel& cost) {
  auto members = ordered_json::array();
  for (const auto& member : cost.members) {
    members.push_back(core::to_json(member.network.parts()));
    members.back()["typical"] = member.typical;
  }
  return members;
}

ordered_json accuracy_members(const AccuracyModel& accuracy) {
  return core::json_list(accuracy.members,
                         [&](const auto& member) { return core::to_json(member.parts()); });
}

/// What `make` makes of the parts that a file has.
template <core::Described Parts, class Make>
auto read_made(const JsonView& json, const Make& make) -> decltype(make(std::declval<Parts>())) {
  FLEETFIT_ASSIGN(auto parts, core::read<Parts>(json));
  return core::within(json.place(), make(std::move(parts)));
}

Result<DesignNetwork> read_network(const JsonView& json, std::size_t columns) {
  return read_made<DesignNetwork::Parts>(json, [&](DesignNetwork::Parts parts) {
    return DesignNetwork::make(std::move(parts), columns);
  });
}

Result<CostMember> read_member(const JsonView& json, std::size_t columns) {
  FLEETFIT_ASSIGN(auto network, read_network(json, columns));
  FLEETFIT_ASSIGN(const auto typical, json.numbers("typical"));
  CostMember member{.network = std::move(network)};
  for (const double one : typical) member.typical.push_back(static_cast<float>(one));
  return member;
}

Result<CostModel> read_cost(const JsonView& json, std::size_t columns) {
  FLEETFIT_ASSIGN(auto cost, core::read<CostModel>(json));
  if (cost.risk.is_known()) FLEETFIT_TRY(json.number("risk_price"));
  FLEETFIT_ASSIGN(const auto members, json.items("members"));
  for (const auto& item : members) {
    FLEETFIT_ASSIGN(auto member, read_member(item, columns));
    cost.members.push_back(std::move(member));
  }
  return cost;
}

Result<AccuracyModel> read_accuracy(const JsonView& json, std::size_t columns) {
  FLEETFIT_ASSIGN(auto accuracy, core::read<AccuracyModel>(json));
  FLEETFIT_ASSIGN(const auto members, json.items("members"));
  for (const auto& item : members) {
    FLEETFIT_ASSIGN(auto member, read_network(item, columns));
    accuracy.members.push_back(std::move(member));
  }
  return accuracy;
}

Result<OptimizerNetwork> read_optimizer(const JsonView& json, const Model::Parts& model) {
  return read_made<OptimizerNetwork::Parts>(json, [&](OptimizerNetwork::Parts parts) {
    return OptimizerNetwork::make(std::move(parts), *model.space, Model::optimizer_inputs(model));
  });
}

Result<const space::Space*> read_space(const JsonView& json) {
  FLEETFIT_TRY(json.allow_only({"format", "version", "space", "space_version", "features", "costs",
                                "accuracy", "optimizers", "lineage"}));
  FLEETFIT_TRY(core::check_format(json, kFormat, kVersion));
  FLEETFIT_ASSIGN(const auto name, json.text("space"));
  FLEETFIT_ASSIGN(const auto space_version, json.integer("space_version", {.min = 0}));
  auto space = space::find_space(name);
  if (!space) return json.error(space.error().message);
  if (space_version != (*space)->version()) {
    return json.error(fmt::format("made for version {} of the space {}, which is now at {}",
                                  space_version, name, (*space)->version()));
  }
  return space;
}

}  // namespace

core::Fields fields_of(const DesignNetwork::Parts*) {
  using Parts = DesignNetwork::Parts;
  static constexpr core::Field kAll[] = {FLEETFIT_MEMBERS(Parts, layers, skip)};
  return {.all = kAll};
}

core::Fields fields_of(const OptimizerNetwork::Gene*) {
  using Gene = OptimizerNetwork::Gene;
  static constexpr core::Field kAll[] = {FLEETFIT_MEMBERS(Gene, place, choices, out)};
  return {.all = kAll};
}

core::Fields fields_of(const OptimizerNetwork::Parts*) {
  using Parts = OptimizerNetwork::Parts;
  static constexpr core::Field kAll[] = {FLEETFIT_MEMBERS(Parts, context, hidden, genes)};
  return {.all = kAll};
}

core::Fields fields_of(const InputColumn*) {
  static constexpr core::Field kAll[] = {core::field<&InputColumn::name>("name"),
                                         core::field<&InputColumn::is_reference>("reference"),
                                         core::field<&InputColumn::is_logarithm>("logarithm"),
                                         FLEETFIT_MEMBERS(InputColumn, middle, mean, scale)};
  return {.all = kAll};
}

core::Fields fields_of(const DeviceInputs::Parts*) {
  using Parts = DeviceInputs::Parts;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(Parts, columns, covariance, familiarity, usual_distance)};
  return {.all = kAll};
}

// Files of version 1 have none.
core::Fields fields_of(const Risk*) {
  static constexpr core::Field kAll[] = {core::field<&Risk::excess>("excess").may_be_missing(),
                                         core::field<&Risk::price>("risk_price").may_be_missing()};
  return {.all = kAll};
}

core::Fields fields_of(const CostModel*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(CostModel, name, offset, scale, margin),
      core::field<&CostModel::risk>("risk").inlined(),
      FLEETFIT_MEMBERS(CostModel, noise, usual_spread, rank_correlation),
      core::written_field<CostModel, cost_members>("members")};
  return {.all = kAll};
}

core::Fields fields_of(const AccuracyModel*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(AccuracyModel, centre, scale, spread90),
      core::written_field<AccuracyModel, accuracy_members>("members")};
  return {.all = kAll};
}

core::Fields fields_of(const Lineage*) {
  static constexpr core::Field kAll[] = {FLEETFIT_MEMBERS(Lineage, method, devices, designs, seed)};
  return {.all = kAll};
}

nlohmann::json to_json(const Model& model) {
  const auto& parts = model.parts();
  auto optimizers = core::json_list(parts.optimizers,
                                    [&](const auto& one) { return core::to_json(one.parts()); });
  return {{"format", kFormat},
          {"version", kVersion},
          {"space", parts.space->name()},
          {"space_version", parts.space->version()},
          {"features", core::to_json(parts.device.parts())},
          {"costs", core::to_json(parts.costs)},
          {"accuracy", core::to_json(parts.accuracy)},
          {"optimizers", std::move(optimizers)},
          {"lineage", core::to_json(parts.lineage)}};
}

Result<Model> model_from_json(const JsonView& json) {
  FLEETFIT_ASSIGN(const auto space, read_space(json));
  const std::size_t columns = DesignColumns(*space).count();
  FLEETFIT_ASSIGN(const auto features, json.at("features"));
  FLEETFIT_ASSIGN(auto device, read_made<DeviceInputs::Parts>(features, DeviceInputs::make));
  FLEETFIT_ASSIGN(const auto accuracy_json, json.at("accuracy"));
  FLEETFIT_ASSIGN(auto accuracy, read_accuracy(accuracy_json, columns));
  FLEETFIT_ASSIGN(const auto lineage_json, json.at("lineage"));
  FLEETFIT_ASSIGN(auto lineage, core::read<Lineage>(lineage_json));
  Model::Parts parts{.space = space,
                     .device = std::move(device),
                     .accuracy = std::move(accuracy),
                     .lineage = std::move(lineage)};
  FLEETFIT_ASSIGN(const auto costs, json.items("costs"));
  for (const auto& item : costs) {
    FLEETFIT_ASSIGN(auto cost, read_cost(item, columns));
    parts.costs.push_back(std::move(cost));
  }
  FLEETFIT_ASSIGN(const auto optimizers, json.items("optimizers"));
  for (const auto& item : optimizers) {
    FLEETFIT_ASSIGN(auto optimizer, read_optimizer(item, parts));
    parts.optimizers.push_back(std::move(optimizer));
  }
  return core::within(json.place(), Model::make(std::move(parts)));
}

Status write_model(const Model& model, const std::filesystem::path& file) {
  return core::write_file(file, core::format_json_line(to_json(model)) + "\n");
}

Result<Model> read_model(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  return model_from_json(JsonView(document, file.string()));
}

}  // namespace fleetfit::learned
