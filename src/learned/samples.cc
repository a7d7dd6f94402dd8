#include "fleetfit/learned/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"

namespace fleetfit::learned {
namespace {

using core::JsonView;
using Json = nlohmann::json;

constexpr std::string_view kType = "learning-samples";
constexpr int kTypeVersion = 1;
constexpr std::size_t kFewestDesigns = 10;

Status check_cost(const Samples& samples, std::size_t number) {
  const auto& cost = samples.costs[number];
  if (cost.values.size() != samples.devices.size() * samples.designs.size())
    return refuse(fmt::format("{}: not a number for each design on each device", cost.name));
  for (std::size_t device = 0; device < samples.devices.size(); ++device) {
    const auto values = samples.costs_on(number, device);
    std::size_t there = 0;
    for (const double value : values) {
      if (std::isnan(value)) continue;
      if (!(value > 0) || !std::isfinite(value)) {
        return refuse(fmt::format("{} on {}: {} is not positive and finite", cost.name,
                                  samples.devices[device], value));
      }
      ++there;
    }
    if (there < kFewestDesigns) {
      return refuse(fmt::format("{} on {}: {} designs were measured, at least {} are needed",
                                cost.name, samples.devices[device], there, kFewestDesigns));
    }
  }
  return {};
}

Status check_accuracy(const Samples& samples) {
  if (samples.accuracy.size() != samples.designs.size())
    return refuse("accuracy: not a number for each design");
  std::vector<double> there;
  for (const double value : samples.accuracy) {
    if (std::isinf(value)) return refuse("accuracy: a number is infinite");
    if (!std::isnan(value)) there.push_back(value);
  }
  if (there.size() < kFewestDesigns) {
    return refuse(fmt::format("the accuracy of {} of the designs is known, at least {} are needed",
                              there.size(), kFewestDesigns));
  }
  const auto [low, high] = std::ranges::minmax(there);
  if (low == high) return refuse("accuracy: all designs have the same");
  return {};
}

}  // namespace

Status check(const Samples& samples) {
  if (samples.space == nullptr) return refuse("there is no space");
  if (samples.designs.size() == 0) return refuse("there are no designs");
  if (samples.costs.empty()) return refuse("there are no costs");
  if (samples.features.devices() != samples.devices.size() ||
      samples.features.is_reference.size() != samples.features.columns())
    return refuse("features: not a row for each device");
  for (std::size_t i = 0; i < samples.designs.size(); ++i)
    FLEETFIT_TRY(samples.space->check(std::as_const(samples.designs)[i]));
  for (std::size_t i = 0; i < samples.costs.size(); ++i) FLEETFIT_TRY(check_cost(samples, i));
  return check_accuracy(samples);
}

Samples of_devices(const Samples& samples, std::span<const std::size_t> devices) {
  Samples some{
      .space = samples.space,
      .designs = samples.designs,
      .accuracy = samples.accuracy,
      .features = {.names = samples.features.names, .is_reference = samples.features.is_reference}};
  for (const auto device : devices) {
    some.devices.push_back(samples.devices[device]);
    const auto row = samples.features.row(device);
    some.features.values.insert(some.features.values.end(), row.begin(), row.end());
  }
  for (std::size_t i = 0; i < samples.costs.size(); ++i) {
    CostSamples cost{.name = samples.costs[i].name};
    for (const auto device : devices) {
      const auto values = samples.costs_on(i, device);
      cost.values.insert(cost.values.end(), values.begin(), values.end());
    }
    some.costs.push_back(std::move(cost));
  }
  return some;
}

namespace {

/// JSON has no NaN: what is missing is null.
Json with_nulls(std::span<const double> values) {
  auto list = Json::array();
  for (const double value : values) {
    if (std::isnan(value)) {
      list.push_back(nullptr);
    } else {
      list.push_back(value);
    }
  }
  return list;
}

Result<std::vector<double>> numbers_or_nulls(const JsonView& json, std::string_view key) {
  FLEETFIT_ASSIGN(const auto list, json.at(key));
  if (!list.value().is_array()) return list.error("expected a list of numbers");
  std::vector<double> values;
  values.reserve(list.value().size());
  for (const auto& value : list.value()) {
    if (!value.is_null() && !value.is_number()) return list.error("expected numbers or null");
    values.push_back(value.is_null() ? NAN : value.get<double>());
  }
  return values;
}

Result<CostSamples> read_cost(const JsonView& json) {
  FLEETFIT_ASSIGN(auto name, json.text("name"));
  FLEETFIT_ASSIGN(auto values, numbers_or_nulls(json, "values"));
  return CostSamples{.name = std::move(name), .values = std::move(values)};
}

Result<KnownFeatures> read_features(const JsonView& json) {
  FLEETFIT_ASSIGN(auto names, json.texts("names"));
  FLEETFIT_ASSIGN(const auto references, json.numbers("reference"));
  FLEETFIT_ASSIGN(auto values, numbers_or_nulls(json, "values"));
  KnownFeatures features{.names = std::move(names), .values = std::move(values)};
  for (const double one : references) features.is_reference.push_back(one != 0);
  if (features.names.empty() || features.values.size() % features.names.size() != 0)
    return json.error("not a number for each feature of each device");
  return features;
}

Status read_designs(const JsonView& json, Samples& samples) {
  FLEETFIT_ASSIGN(const auto texts, json.texts("designs"));
  samples.designs = space::Population(samples.space->genes().size());
  for (const auto& text : texts) {
    const auto design = samples.space->parse(text);
    if (!design) return json.error(design.error().message);
    samples.designs.add(*design);
  }
  return {};
}

Result<Samples> samples_from_json(const JsonView& json) {
  FLEETFIT_ASSIGN(const auto type, json.text("type"));
  FLEETFIT_ASSIGN(const auto version, json.integer("version"));
  if (type != kType || version != kTypeVersion)
    return json.error(fmt::format("expected {} of version {}", kType, kTypeVersion));
  FLEETFIT_ASSIGN(const auto name, json.text("space"));
  const auto space = space::find_space(name);
  if (!space) return json.error(space.error().message);
  Samples samples{.space = *space};
  FLEETFIT_TRY(read_designs(json, samples));
  FLEETFIT_ASSIGN(auto accuracy, numbers_or_nulls(json, "accuracy"));
  FLEETFIT_ASSIGN(auto devices, json.texts("devices"));
  FLEETFIT_ASSIGN(auto features, json.at("features").and_then(read_features));
  samples.accuracy = std::move(accuracy);
  samples.devices = std::move(devices);
  samples.features = std::move(features);
  FLEETFIT_ASSIGN(const auto costs, json.items("costs"));
  for (const auto& item : costs) {
    FLEETFIT_ASSIGN(auto cost, read_cost(item));
    samples.costs.push_back(std::move(cost));
  }
  FLEETFIT_TRY(core::within(json.place(), check(samples)));
  return samples;
}

}  // namespace

Status write_samples(const Samples& samples, const std::filesystem::path& file) {
  auto designs = Json::array();
  for (std::size_t i = 0; i < samples.designs.size(); ++i)
    designs.push_back(samples.space->format(samples.designs[i]));
  auto costs = Json::array();
  for (const auto& cost : samples.costs)
    costs.push_back({{"name", cost.name}, {"values", with_nulls(cost.values)}});
  auto references = Json::array();
  for (const bool one : samples.features.is_reference) references.push_back(one ? 1 : 0);
  const Json document{{"type", kType},
                      {"version", kTypeVersion},
                      {"space", samples.space->name()},
                      {"designs", std::move(designs)},
                      {"accuracy", with_nulls(samples.accuracy)},
                      {"devices", samples.devices},
                      {"features",
                       {{"names", samples.features.names},
                        {"reference", std::move(references)},
                        {"values", with_nulls(samples.features.values)}}},
                      {"costs", std::move(costs)}};
  return core::write_file(file, core::format_json_line(document) + "\n");
}

Result<Samples> read_samples(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  return samples_from_json(JsonView(document, file.string()));
}

}  // namespace fleetfit::learned
