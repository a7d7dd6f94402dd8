#include "predict/predictor_fields.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace fleetfit::predict {
namespace {

constexpr std::string_view kFormat = "fleetfit-predictor";
constexpr int kVersion = 1;

Status read_text(const core::JsonView& json, std::string_view key, std::string& into) {
  FLEETFIT_ASSIGN(auto text, json.text_or(key, ""));
  into = std::move(text);
  return {};
}

Status read_count(const core::JsonView& json, std::string_view key, int& into) {
  FLEETFIT_ASSIGN(const auto number,
                  json.integer_or(key, 0, {.min = 0, .max = std::numeric_limits<int>::max()}));
  into = static_cast<int>(number);
  return {};
}

Status read_trained_on(const core::JsonView& identity, TrainedOn& into) {
  FLEETFIT_ASSIGN(const auto found, identity.find("trained_on"));
  if (!found) return {};  // a device on paper
  const auto& json = found;
  FLEETFIT_TRY(read_text(*json, "space", into.space));
  FLEETFIT_ASSIGN(const auto seed, json->integer_or("seed", 0, {.min = 0}));
  FLEETFIT_ASSIGN(const auto first, json->integer_or("first", 0, {.min = 0}));
  FLEETFIT_ASSIGN(const auto designs, json->integer_or("designs", 0, {.min = 0}));
  FLEETFIT_ASSIGN(const auto models, json->texts("models"));
  into.seed = static_cast<std::uint64_t>(seed);
  into.first = static_cast<std::uint64_t>(first);
  into.designs = static_cast<std::uint64_t>(designs);
  into.models = models;
  return {};
}

Result<double> at_least(const core::JsonView& json, std::string_view key, double least) {
  const auto number = json.number(key);
  if (!number || *number >= least) return number;
  return json.at(key)->error(
      fmt::format("{} is {}", *number, least > 0 ? "not positive" : "negative"));
}

}  // namespace

nlohmann::json document_head(std::string_view type, const Identity& identity) {
  return {{"format", kFormat},
          {"version", kVersion},
          {"type", type},
          {"identity",
           {{"device", identity.device},
            {"fingerprint", identity.fingerprint},
            {"runtime", identity.runtime},
            {"precision", identity.precision},
            {"rules", identity.rules},
            {"method", identity.method},
            {"networks", identity.networks},
            {"date", identity.date},
            {"fleetfit_version", identity.fleetfit_version},
            {"feature_version", identity.feature_version},
            {"trained_on",
             {{"space", identity.trained_on.space},
              {"seed", identity.trained_on.seed},
              {"first", identity.trained_on.first},
              {"designs", identity.trained_on.designs},
              {"models", identity.trained_on.models}}}}}};
}

Result<std::string> read_document_type(const core::JsonView& json) {
  const auto format = json.text("format");
  if (!format) return format;
  if (*format != kFormat) return json.error(fmt::format("'{}' is no {}", *format, kFormat));
  FLEETFIT_ASSIGN(const auto version, json.integer("version", {.min = 1}));
  if (version > kVersion) {
    return json.error(fmt::format("it is of version {} of the format; this program knows up to {}",
                                  version, kVersion));
  }
  return json.text("type");
}

Result<Identity> read_identity(const core::JsonView& document) {
  FLEETFIT_ASSIGN(const auto json, document.at("identity"));
  Identity identity;
  const std::pair<std::string_view, std::string*> texts[] = {
      {"device", &identity.device},   {"fingerprint", &identity.fingerprint},
      {"runtime", &identity.runtime}, {"precision", &identity.precision},
      {"rules", &identity.rules},     {"method", &identity.method},
      {"date", &identity.date},       {"fleetfit_version", &identity.fleetfit_version}};
  for (const auto& [key, into] : texts) FLEETFIT_TRY(read_text(json, key, *into));
  const std::pair<std::string_view, int*> counts[] = {
      {"networks", &identity.networks}, {"feature_version", &identity.feature_version}};
  for (const auto& [key, into] : counts) FLEETFIT_TRY(read_count(json, key, *into));
  FLEETFIT_TRY(read_trained_on(json, identity.trained_on));
  if (identity.feature_version != cost::kFeatureVersion) {
    return json.error(
        fmt::format("its features are of version {}; this program computes version {}",
                    identity.feature_version, cost::kFeatureVersion));
  }
  return identity;
}

Result<const space::Space*> read_space(const core::JsonView& json) {
  FLEETFIT_ASSIGN(const auto name, json.text("space"));
  const auto space = space::find_space(name);
  if (!space) return json.at("space")->error(space.error().message);
  FLEETFIT_ASSIGN(const auto version, json.integer_or("space_version", 1));
  if (version != (*space)->version()) {
    return json.at("space_version")
        ->error(fmt::format("is {}, the space {} here has version {}", version, name,
                            (*space)->version()));
  }
  return *space;
}

Result<double> positive(const core::JsonView& json, std::string_view key) {
  return at_least(json, key, std::numeric_limits<double>::min());
}

Result<double> not_negative(const core::JsonView& json, std::string_view key) {
  return at_least(json, key, 0);
}

}  // namespace fleetfit::predict
