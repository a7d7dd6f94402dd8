#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/learned/model.h"
#include "fleetfit/predict/network_json.h"

namespace fleetfit::learned {
namespace {

using core::JsonView;
using Json = nlohmann::json;
using predict::DenseLayer;

constexpr std::string_view kFormat = "fleetfit-learned";
constexpr int kVersion = 2;  // 1: without risks

Json layer_json(const DenseLayer& layer) { return predict::to_json(std::span(&layer, 1)).front(); }

Json network_json(const DesignNetwork& network) {
  return {{"layers", predict::to_json(network.parts().layers)},
          {"skip", layer_json(network.parts().skip)}};
}

Json features_json(const DeviceInputs& device) {
  auto columns = Json::array();
  for (const auto& column : device.parts().columns) {
    columns.push_back({{"name", column.name},
                       {"reference", column.is_reference},
                       {"logarithm", column.is_logarithm},
                       {"middle", column.middle},
                       {"mean", column.mean},
                       {"scale", column.scale}});
  }
  return {{"columns", std::move(columns)},
          {"covariance", device.parts().covariance},
          {"familiarity", device.parts().familiarity},
          {"usual_distance", device.parts().usual_distance}};
}

Json cost_json(const CostModel& cost) {
  auto members = Json::array();
  for (const auto& member : cost.members) {
    auto one = network_json(member.network);
    one["typical"] = member.typical;
    members.push_back(std::move(one));
  }
  return {{"name", cost.name},
          {"offset", cost.offset},
          {"scale", cost.scale},
          {"margin", cost.margin},
          {"excess", cost.risk.excess},
          {"risk_price", cost.risk.price},
          {"noise", cost.noise},
          {"usual_spread", cost.usual_spread},
          {"rank_correlation", cost.rank_correlation},
          {"members", std::move(members)}};
}

Json accuracy_json(const AccuracyModel& accuracy) {
  auto members = Json::array();
  for (const auto& member : accuracy.members) members.push_back(network_json(member));
  return {{"centre", accuracy.centre},
          {"scale", accuracy.scale},
          {"spread90", accuracy.spread90},
          {"members", std::move(members)}};
}

Json optimizer_json(const OptimizerNetwork& network) {
  const auto& parts = network.parts();
  auto genes = Json::array();
  for (const auto& gene : parts.genes) {
    genes.push_back({{"place", layer_json(gene.place)},
                     {"choices", layer_json(gene.choices)},
                     {"out", layer_json(gene.out)}});
  }
  return {{"context", predict::to_json(parts.context)},
          {"hidden", layer_json(parts.hidden)},
          {"genes", std::move(genes)}};
}

/// Reads what may fail field by field; after the first failure nothing more is read.
class Fields {
 public:
  explicit Fields(const JsonView& json) : json_(&json) {}

  double number(std::string_view key) { return take(json_->number(key), 0.0); }
  std::string text(std::string_view key) { return take(json_->text(key), std::string()); }
  bool boolean(std::string_view key) { return take(json_->boolean(key), false); }
  std::vector<double> numbers(std::string_view key) {
    return take(json_->numbers(key), std::vector<double>());
  }
  std::vector<std::string> texts(std::string_view key) {
    return take(json_->texts(key), std::vector<std::string>());
  }
  std::int64_t whole(std::string_view key) {
    return take(json_->integer(key, {.min = 0}), std::int64_t{0});
  }
  std::vector<JsonView> items(std::string_view key) {
    return take(json_->items(key), std::vector<JsonView>());
  }
  std::vector<DenseLayer> layers(std::string_view key) {
    return take(json_->at(key).and_then(predict::read_layers), std::vector<DenseLayer>());
  }
  /// A single layer is written as one, not as a list of one.
  DenseLayer layer(std::string_view key) {
    const auto value = json_->at(key);
    if (!value) return take(Result<DenseLayer>(tl::unexpected(value.error())), DenseLayer());
    const Json list = Json::array({value->value()});
    const JsonView view(list, value->place());
    auto read = predict::read_layers(view);
    if (!read) return take(Result<DenseLayer>(tl::unexpected(read.error())), DenseLayer());
    return std::move(read->front());
  }

  Status status() const { return status_; }

  template <class T>
  T take(Result<T> result, T fallback) {
    if (result) return *std::move(result);
    if (status_) status_ = tl::unexpected(std::move(result.error()));
    return fallback;
  }

 private:
  const JsonView* json_;
  Status status_;
};

Result<DesignNetwork> read_network(const JsonView& json, std::size_t columns) {
  Fields fields(json);
  DesignNetwork::Parts parts{.layers = fields.layers("layers"), .skip = fields.layer("skip")};
  FLEETFIT_TRY(fields.status());
  auto network = DesignNetwork::make(std::move(parts), columns);
  if (!network) return json.error(network.error().message);
  return network;
}

Result<DeviceInputs> read_features(const JsonView& json) {
  Fields fields(json);
  DeviceInputs::Parts parts;
  for (const auto& item : fields.items("columns")) {
    Fields column(item);
    parts.columns.push_back({.name = column.text("name"),
                             .is_reference = column.boolean("reference"),
                             .is_logarithm = column.boolean("logarithm"),
                             .middle = column.number("middle"),
                             .mean = column.number("mean"),
                             .scale = column.number("scale")});
    FLEETFIT_TRY(column.status());
  }
  parts.covariance = fields.numbers("covariance");
  parts.familiarity = fields.numbers("familiarity");
  parts.usual_distance = fields.number("usual_distance");
  FLEETFIT_TRY(fields.status());
  auto inputs = DeviceInputs::make(std::move(parts));
  if (!inputs) return json.error(inputs.error().message);
  return inputs;
}

Result<CostMember> read_member(const JsonView& json, std::size_t columns) {
  FLEETFIT_ASSIGN(auto network, read_network(json, columns));
  FLEETFIT_ASSIGN(const auto typical, json.numbers("typical"));
  CostMember member{.network = std::move(network)};
  for (const double one : typical) member.typical.push_back(static_cast<float>(one));
  return member;
}

/// Files of version 1 have none.
Risk read_risk(const JsonView& json, Fields& fields) {
  if (!json.value().is_object() || !json.value().contains("excess")) return {};
  return {.excess = fields.numbers("excess"), .price = fields.number("risk_price")};
}

Result<CostModel> read_cost(const JsonView& json, std::size_t columns) {
  Fields fields(json);
  CostModel cost{.name = fields.text("name"),
                 .offset = fields.number("offset"),
                 .scale = fields.number("scale"),
                 .margin = fields.number("margin"),
                 .risk = read_risk(json, fields),
                 .noise = fields.number("noise"),
                 .usual_spread = fields.number("usual_spread"),
                 .rank_correlation = fields.number("rank_correlation")};
  for (const auto& item : fields.items("members")) {
    FLEETFIT_ASSIGN(auto member, read_member(item, columns));
    cost.members.push_back(std::move(member));
  }
  FLEETFIT_TRY(fields.status());
  return cost;
}

Result<AccuracyModel> read_accuracy(const JsonView& json, std::size_t columns) {
  Fields fields(json);
  AccuracyModel accuracy{.centre = fields.number("centre"),
                         .scale = fields.number("scale"),
                         .spread90 = fields.number("spread90")};
  for (const auto& item : fields.items("members")) {
    FLEETFIT_ASSIGN(auto member, read_network(item, columns));
    accuracy.members.push_back(std::move(member));
  }
  FLEETFIT_TRY(fields.status());
  return accuracy;
}

Result<OptimizerNetwork> read_optimizer(const JsonView& json, const Model::Parts& model) {
  Fields fields(json);
  OptimizerNetwork::Parts parts{.context = fields.layers("context"),
                                .hidden = fields.layer("hidden")};
  for (const auto& item : fields.items("genes")) {
    Fields gene(item);
    parts.genes.push_back(
        {.place = gene.layer("place"), .choices = gene.layer("choices"), .out = gene.layer("out")});
    FLEETFIT_TRY(gene.status());
  }
  FLEETFIT_TRY(fields.status());
  auto network =
      OptimizerNetwork::make(std::move(parts), *model.space, Model::optimizer_inputs(model));
  if (!network) return json.error(network.error().message);
  return network;
}

Result<const space::Space*> read_space(const JsonView& json) {
  FLEETFIT_TRY(json.allow_only({"format", "version", "space", "space_version", "features", "costs",
                                "accuracy", "optimizers", "lineage"}));
  Fields fields(json);
  const auto format = fields.text("format");
  const auto version = fields.whole("version");
  const auto name = fields.text("space");
  const auto space_version = fields.whole("space_version");
  FLEETFIT_TRY(fields.status());
  if (format != kFormat)
    return json.error(fmt::format("format is '{}', expected '{}'", format, kFormat));
  if (version < 1 || version > kVersion)
    return json.error(fmt::format("version {} is none that this program knows", version));
  auto space = space::find_space(name);
  if (!space) return json.error(space.error().message);
  if (space_version != (*space)->version()) {
    return json.error(fmt::format("made for version {} of the space {}, which is now at {}",
                                  space_version, name, (*space)->version()));
  }
  return space;
}

Result<Lineage> read_lineage(const JsonView& json) {
  Fields fields(json);
  Lineage lineage{.method = fields.text("method"),
                  .devices = fields.texts("devices"),
                  .designs = static_cast<std::size_t>(fields.whole("designs")),
                  .seed = static_cast<std::uint64_t>(fields.whole("seed"))};
  FLEETFIT_TRY(fields.status());
  return lineage;
}

}  // namespace

Json to_json(const Model& model) {
  const auto& parts = model.parts();
  auto costs = Json::array();
  for (const auto& cost : parts.costs) costs.push_back(cost_json(cost));
  auto optimizers = Json::array();
  for (const auto& optimizer : parts.optimizers) optimizers.push_back(optimizer_json(optimizer));
  return {{"format", kFormat},
          {"version", kVersion},
          {"space", parts.space->name()},
          {"space_version", parts.space->version()},
          {"features", features_json(parts.device)},
          {"costs", std::move(costs)},
          {"accuracy", accuracy_json(parts.accuracy)},
          {"optimizers", std::move(optimizers)},
          {"lineage",
           {{"method", parts.lineage.method},
            {"devices", parts.lineage.devices},
            {"designs", parts.lineage.designs},
            {"seed", parts.lineage.seed}}}};
}

Result<Model> model_from_json(const JsonView& json) {
  FLEETFIT_ASSIGN(const auto space, read_space(json));
  const std::size_t columns = DesignColumns(*space).count();
  FLEETFIT_ASSIGN(auto device, json.at("features").and_then(read_features));
  const auto read_accuracy_of = [&](const JsonView& view) { return read_accuracy(view, columns); };
  FLEETFIT_ASSIGN(auto accuracy, json.at("accuracy").and_then(read_accuracy_of));
  FLEETFIT_ASSIGN(auto lineage, json.at("lineage").and_then(read_lineage));
  Model::Parts parts{.space = space,
                     .device = std::move(device),
                     .accuracy = std::move(accuracy),
                     .lineage = std::move(lineage)};
  Fields fields(json);
  for (const auto& item : fields.items("costs")) {
    FLEETFIT_ASSIGN(auto cost, read_cost(item, columns));
    parts.costs.push_back(std::move(cost));
  }
  for (const auto& item : fields.items("optimizers")) {
    FLEETFIT_ASSIGN(auto optimizer, read_optimizer(item, parts));
    parts.optimizers.push_back(std::move(optimizer));
  }
  FLEETFIT_TRY(fields.status());
  auto model = Model::make(std::move(parts));
  if (!model) return json.error(model.error().message);
  return model;
}

Status write_model(const Model& model, const std::filesystem::path& file) {
  return core::write_file(file, core::format_json_line(to_json(model)) + "\n");
}

Result<Model> read_model(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  return model_from_json(JsonView(document, file.string()));
}

}  // namespace fleetfit::learned
