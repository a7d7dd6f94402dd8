#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "fleetfit/predict/operator_predictor.h"
#include "predict/documents.h"

namespace fleetfit::predict {
namespace {

using core::JsonView;
using Json = nlohmann::ordered_json;
using Parts = OperatorPredictor::Parts;

/// A model that an older version wrote knows the first of them only.
std::span<const std::string> known_names(const KindModel& kind) {
  return std::span(cost::feature_names(kind.kind)).first(kind.low.size());
}

std::vector<std::string> write_names(const KindModel& kind) {
  const auto names = known_names(kind);
  return {names.begin(), names.end()};
}

/// Makes room for the ranges of as many features as the model knows: all, or the first of them if
/// an older version wrote it.
Status read_names(const JsonView& json, KindModel& kind) {
  FLEETFIT_ASSIGN(const auto names, json.as_texts());
  const auto& all = cost::feature_names(kind.kind);
  const bool has_generic = names.size() >= cost::generic_feature_names().size();
  if (!has_generic || names.size() > all.size() ||
      !std::equal(names.begin(), names.end(), all.begin())) {
    return json.error(fmt::format("these are not the features of kernels of kind {}", kind.kind));
  }
  kind.low.resize(names.size());
  return {};
}

template <std::vector<double> KindModel::* member>
Status read_of_features(const JsonView& json, KindModel& kind) {
  FLEETFIT_ASSIGN(kind.*member, numbers_of_length(json, known_names(kind).size()));
  return {};
}

template <std::vector<double> KindModel::* member>
std::vector<double> write_of_features(const KindModel& kind) {
  return kind.*member;
}

/// A number for each feature.
template <std::vector<double> KindModel::* member>
constexpr core::Field field_of_features(std::string_view name) {
  return core::field_by<KindModel, read_of_features<member>, write_of_features<member>>(name);
}

Json write_conditions(const KindModel& kind) {
  auto json = Json::array();
  for (const auto& condition : kind.when)
    json.push_back({{"feature", cost::feature_names(kind.kind)[condition.feature]},
                    {condition.at_least ? "at_least" : "below", condition.threshold}});
  return json;
}

Status read_condition(const JsonView& json, KindModel& kind) {
  FLEETFIT_ASSIGN(const auto name, json.text("feature"));
  const auto names = known_names(kind);
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    return json.error(fmt::format("kernels of kind {} have no feature '{}'", kind.kind, name));
  FLEETFIT_ASSIGN(const auto at_least, json.find("at_least"));
  FLEETFIT_ASSIGN(const auto threshold, json.number(at_least ? "at_least" : "below"));
  kind.when.push_back({.feature = static_cast<std::size_t>(found - names.begin()),
                       .threshold = threshold,
                       .at_least = at_least.has_value()});
  return {};
}

Status read_conditions(const JsonView& json, KindModel& kind) {
  FLEETFIT_ASSIGN(const auto items, json.items());
  for (const auto& item : items) FLEETFIT_TRY(read_condition(item, kind));
  return {};
}

Status read_linear(const JsonView& json, std::size_t features, LinearModel& into) {
  FLEETFIT_ASSIGN(const auto model, LinearModel::from_json(json, features));
  into = dynamic_cast<const LinearModel&>(*model);
  return {};
}

Status read_guide(const JsonView& json, KindModel& kind) {
  return read_linear(json, known_names(kind).size(), kind.guide);
}

Json write_guide(const KindModel& kind) { return kind.guide.to_json(); }

Status read_model(const JsonView& json, KindModel& kind) {
  FLEETFIT_ASSIGN(kind.model, regressor_from_json(json, known_names(kind).size()));
  return {};
}

Json write_model(const KindModel& kind) { return kind.model->to_json(); }

Json write_known(const KindModel& kind) {
  auto rows = Json::array();
  for (const auto& one : kind.known) rows.push_back(one.features);
  return rows;
}

Status read_known(const JsonView& json, KindModel& kind) {
  FLEETFIT_ASSIGN(const auto rows, json.items());
  for (const auto& row : rows) {
    FLEETFIT_ASSIGN(auto features, numbers_of_length(row, known_names(kind).size()));
    kind.known.push_back({.features = std::move(features), .ms = 0});
  }
  return {};
}

std::vector<double> write_known_ms(const KindModel& kind) {
  std::vector<double> times;
  for (const auto& one : kind.known) times.push_back(one.ms);
  return times;
}

Status read_known_ms(const JsonView& json, KindModel& kind) {
  FLEETFIT_ASSIGN(const auto times, numbers_of_length(json, kind.known.size()));
  for (std::size_t i = 0; i < times.size(); ++i) kind.known[i].ms = times[i];
  return {};
}

Status read_generic(const JsonView& json, Parts& parts) {
  return read_linear(json, cost::generic_feature_names().size(), parts.generic);
}

Json write_generic(const Parts& parts) { return parts.generic.to_json(); }

// Files that were made before do not have it.
Status read_short_networks(const JsonView& json, Parts& parts) {
  auto& law = parts.short_networks;
  FLEETFIT_TRY(core::read(json, law));
  // So that no price becomes 0.
  if (!(law.least_ms > 0) || law.least_ms > law.below_ms || law.power > 1)
    return json.error("least_ms must be above 0 and not above below_ms, power not above 1");
  return {};
}

Json write_short_networks(const Parts& parts) {
  return parts.short_networks.power > 0 ? core::to_json(parts.short_networks) : Json();
}

Status check_range(const JsonView& json, const KindModel& kind) {
  for (std::size_t j = 0; j < kind.low.size(); ++j) {
    if (kind.low[j] >= 0 && kind.low[j] <= kind.high[j]) continue;
    return json.at("low")->error(
        fmt::format("{} to {} is no range of feature {}", kind.low[j], kind.high[j], j));
  }
  return {};
}

Status check_kinds(const JsonView& json, std::span<const KindModel> kinds) {
  FLEETFIT_ASSIGN(const auto items, json.items("kinds"));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    FLEETFIT_TRY(check_range(items[i], kinds[i]));
    if (i > 0 && kinds[i - 1].kind > kinds[i].kind)
      return items[i].error(fmt::format("kind {} is out of order", kinds[i].kind));
  }
  return {};
}

}  // namespace

core::Fields fields_of(const Overhead*) {
  static constexpr core::Field kAll[] = {
      core::field<&Overhead::network_ms>("network_ms").from(0),
      core::field<&Overhead::kernel_ms>("kernel_ms").from(0),
      // Files that were made before do not have it.
      core::field<&Overhead::full_from_ms>("full_from_ms").from(0).may_be_missing().omit_default()};
  return {.all = kAll};
}

core::Fields fields_of(const ShortNetworks*) {
  static constexpr core::Field kAll[] = {core::field<&ShortNetworks::below_ms>("below_ms").from(0),
                                         core::field<&ShortNetworks::least_ms>("least_ms").from(0),
                                         core::field<&ShortNetworks::power>("power").from(0)};
  return {.all = kAll};
}

core::Fields fields_of(const KindModel*) {
  static constexpr core::Field kAll[] = {
      core::field<&KindModel::kind>("kind"),
      // What follows depends on the features.
      core::field_by<KindModel, read_names, write_names>("features"),
      FLEETFIT_MEMBERS(KindModel, method, settings),
      core::field_by<KindModel, read_guide, write_guide>("guide"),
      field_of_features<&KindModel::low>("low"), field_of_features<&KindModel::high>("high"),
      core::field<&KindModel::least_ms>("least_ms").above(0),
      core::field<&KindModel::samples>("samples").from(0),
      core::field<&KindModel::networks>("networks").from(0),
      core::field<&KindModel::mape>("mape").from(0),
      core::field<&KindModel::share>("share").from(0),
      core::field<&KindModel::spread90>("spread90").from(0),
      core::field<&KindModel::growth>("growth").from(0),
      field_of_features<&KindModel::importance>("importance"),
      core::field_by<KindModel, read_conditions, write_conditions>("when"),
      core::field_by<KindModel, read_known, write_known>("known"),
      core::field_by<KindModel, read_known_ms, write_known_ms>("known_ms"),
      core::field_by<KindModel, read_model, write_model>("model")};
  return {.all = kAll};
}

core::Fields fields_of(const Parts*) {
  static constexpr core::Field kAll[] = {
      core::field<&Parts::overhead>("overhead"),
      core::field_by<Parts, read_short_networks, write_short_networks>("short_networks")
          .may_be_missing()
          .omit_default(),
      core::field_by<Parts, read_generic, write_generic>("generic"),
      core::field<&Parts::generic_spread90>("generic_spread90").from(0),
      core::field<&Parts::network_score90>("network_score90").from(0),
      core::field<&Parts::network_mape>("network_mape").from(0),
      core::field<&Parts::kinds>("kinds")};
  return {.all = kAll};
}

nlohmann::json OperatorPredictor::to_json() const {
  return document("operators", parts_.identity, parts_);
}

Result<std::unique_ptr<KernelPredictor>> OperatorPredictor::from_json(const JsonView& json,
                                                                      Identity identity) {
  Parts parts{.identity = std::move(identity)};
  FLEETFIT_TRY(core::read(json, parts));
  FLEETFIT_TRY(check_kinds(json, parts.kinds));
  return std::make_unique<OperatorPredictor>(std::move(parts));
}

}  // namespace fleetfit::predict
