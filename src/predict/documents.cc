#include <fmt/format.h>

#include "fleetfit/core/document_format.h"

#include "predict/documents.h"

namespace fleetfit::predict {
namespace {

constexpr std::string_view kFormat = "fleetfit-predictor";
constexpr int kVersion = 1;

}  // namespace

Result<std::vector<double>> numbers_of_length(const core::JsonView& json, std::string_view key,
                                              std::size_t length) {
  FLEETFIT_ASSIGN(const auto list, json.at(key));
  return numbers_of_length(list, length);
}

Result<std::vector<double>> numbers_of_length(const core::JsonView& json, std::size_t length) {
  auto numbers = json.as_numbers();
  if (!numbers || numbers->size() == length) return numbers;
  return json.error(fmt::format("expected {} numbers, found {}", length, numbers->size()));
}

Status check_kind(const core::JsonView& json, const DocumentKind& kind) {
  FLEETFIT_ASSIGN(const auto found, json.text("type"));
  if (found != kind.type) {
    return json.at("type")->error(fmt::format(R"(expected "{}", found "{}")", kind.type, found));
  }
  FLEETFIT_ASSIGN(const auto number, json.integer("version"));
  if (number < 1 || number > kind.version) {
    return json.at("version")->error(
        fmt::format("version {} of {} is not known; this program reads up to {}", number, kind.type,
                    kind.version));
  }
  return {};
}

core::Fields fields_of(const TrainedOn*) {
  static constexpr core::Field kAll[] = {
      core::field<&TrainedOn::space>("space").may_be_missing(),
      core::field<&TrainedOn::seed>("seed").may_be_missing(),
      core::field<&TrainedOn::first>("first").may_be_missing(),
      core::field<&TrainedOn::designs>("designs").may_be_missing(),
      core::field<&TrainedOn::models>("models")};
  return {.all = kAll};
}

core::Fields fields_of(const Identity*) {
  static constexpr core::Field kAll[] = {
      core::field<&Identity::device>("device").may_be_missing(),
      core::field<&Identity::fingerprint>("fingerprint").may_be_missing(),
      core::field<&Identity::runtime>("runtime").may_be_missing(),
      core::field<&Identity::precision>("precision").may_be_missing(),
      core::field<&Identity::rules>("rules").may_be_missing(),
      core::field<&Identity::method>("method").may_be_missing(),
      core::field<&Identity::networks>("networks").from(0).may_be_missing(),
      core::field<&Identity::date>("date").may_be_missing(),
      core::field<&Identity::fleetfit_version>("fleetfit_version").may_be_missing(),
      core::field<&Identity::feature_version>("feature_version").from(0).may_be_missing(),
      core::field<&Identity::trained_on>("trained_on").may_be_missing()};
  return {.all = kAll};
}

nlohmann::json document_head(std::string_view type, const Identity& identity) {
  return {{"format", kFormat},
          {"version", kVersion},
          {"type", type},
          {"identity", core::to_json<nlohmann::json>(identity)}};
}

Result<std::string> read_document_type(const core::JsonView& json) {
  const auto format = json.text("format");
  if (!format) return format;
  if (*format != kFormat) return json.error(fmt::format("'{}' is no {}", *format, kFormat));
  FLEETFIT_TRY(core::check_format(json, kFormat, kVersion));
  return json.text("type");
}

Result<Identity> read_identity(const core::JsonView& document) {
  FLEETFIT_ASSIGN(const auto json, document.at("identity"));
  Identity identity{.precision = "", .feature_version = 0};  // what a file does not say is unknown
  FLEETFIT_TRY(core::read(json, identity));
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

}  // namespace fleetfit::predict
