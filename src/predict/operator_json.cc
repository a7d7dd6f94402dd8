#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "fleetfit/predict/operator_predictor.h"
#include "predict/model_fields.h"
#include "predict/predictor_fields.h"

namespace fleetfit::predict {
namespace {

using core::JsonView;
using Json = nlohmann::json;

Json to_json(const std::vector<Condition>& conditions, const std::string& kind) {
  auto json = Json::array();
  for (const auto& condition : conditions)
    json.push_back({{"feature", cost::feature_names(kind)[condition.feature]},
                    {condition.at_least ? "at_least" : "below", condition.threshold}});
  return json;
}

/// A model that an older version wrote knows the first of them only.
std::span<const std::string> known_names(const KindModel& kind) {
  return std::span(cost::feature_names(kind.kind)).first(kind.low.size());
}

Json to_json(const KindModel& kind) {
  const auto names = known_names(kind);
  auto known = Json::array();
  auto known_ms = Json::array();
  for (const auto& one : kind.known) {
    known.push_back(one.features);
    known_ms.push_back(one.ms);
  }
  return {{"kind", kind.kind},
          {"when", to_json(kind.when, kind.kind)},
          {"method", kind.method},
          {"settings", kind.settings},
          {"features", std::vector<std::string>(names.begin(), names.end())},
          {"model", kind.model->to_json()},
          {"guide", kind.guide.to_json()},
          {"low", kind.low},
          {"high", kind.high},
          {"least_ms", kind.least_ms},
          {"samples", kind.samples},
          {"networks", kind.networks},
          {"mape", kind.mape},
          {"share", kind.share},
          {"spread90", kind.spread90},
          {"growth", kind.growth},
          {"importance", kind.importance},
          {"known", std::move(known)},
          {"known_ms", std::move(known_ms)}};
}

// Reads one field after another and keeps the first error.
class Fields {
 public:
  explicit Fields(const JsonView& json) : json_(json) {}

  template <class T>
  void take(Result<T> value, T& into) {
    if (!status_) return;
    if (value) {
      into = std::move(*value);
    } else {
      status_ = tl::unexpected(value.error());
    }
  }
  void text(std::string_view key, std::string& into) { take(json_.text(key), into); }
  void number(std::string_view key, double& into) { take(json_.number(key), into); }
  void not_negative_number(std::string_view key, double& into) {
    take(not_negative(json_, key), into);
  }
  void positive_number(std::string_view key, double& into) { take(positive(json_, key), into); }
  void numbers(std::string_view key, std::size_t length, std::vector<double>& into) {
    take(numbers_of_length(json_, key, length), into);
  }
  void count(std::string_view key, int& into) {
    std::int64_t number = 0;
    take(json_.integer(key, {.min = 0, .max = std::numeric_limits<int>::max()}), number);
    into = static_cast<int>(number);
  }
  void linear(std::string_view key, std::size_t features, LinearModel& into) {
    if (!status_) return;
    const auto json = json_.at(key);
    if (!json) return keep(json.error());
    const auto model = LinearModel::from_json(*json, features);
    if (!model) return keep(model.error());
    into = dynamic_cast<const LinearModel&>(**model);
  }
  void keep(Error error) {
    if (status_) status_ = tl::unexpected(std::move(error));
  }

  const Status& status() const { return status_; }

 private:
  const JsonView& json_;
  Status status_;
};

/// How many features the model knows: all, or the first of them if an older version wrote it.
Result<std::size_t> read_feature_count(const JsonView& json, const std::string& kind) {
  FLEETFIT_ASSIGN(const auto names, json.texts("features"));
  const auto& all = cost::feature_names(kind);
  const bool has_generic = names.size() >= cost::generic_feature_names().size();
  if (has_generic && names.size() <= all.size() &&
      std::equal(names.begin(), names.end(), all.begin()))
    return names.size();
  return json.at("features")
      ->error(fmt::format("these are not the features of kernels of kind {}", kind));
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
  FLEETFIT_ASSIGN(const auto items, json.items("when"));
  for (const auto& item : items) FLEETFIT_TRY(read_condition(item, kind));
  return {};
}

Status read_known(const JsonView& json, KindModel& kind) {
  FLEETFIT_ASSIGN(const auto rows, json.items("known"));
  FLEETFIT_ASSIGN(const auto times, numbers_of_length(json, "known_ms", rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    FLEETFIT_ASSIGN(auto row, rows[i].as_numbers());
    if (row.size() != kind.low.size()) {
      return rows[i].error(
          fmt::format("expected {} numbers, found {}", kind.low.size(), row.size()));
    }
    kind.known.push_back({.features = std::move(row), .ms = times[i]});
  }
  return {};
}

Status check_range(const JsonView& json, const KindModel& kind) {
  for (std::size_t j = 0; j < kind.low.size(); ++j) {
    if (kind.low[j] >= 0 && kind.low[j] <= kind.high[j]) continue;
    return json.at("low")->error(
        fmt::format("{} to {} is no range of feature {}", kind.low[j], kind.high[j], j));
  }
  return {};
}

Result<KindModel> read_kind(const JsonView& json) {
  KindModel kind;
  Fields fields(json);
  fields.text("kind", kind.kind);
  FLEETFIT_TRY(fields.status());
  FLEETFIT_ASSIGN(const auto counted, read_feature_count(json, kind.kind));
  const std::size_t features = counted;
  fields.text("method", kind.method);
  fields.text("settings", kind.settings);
  fields.linear("guide", features, kind.guide);
  fields.numbers("low", features, kind.low);
  fields.numbers("high", features, kind.high);
  fields.positive_number("least_ms", kind.least_ms);
  fields.count("samples", kind.samples);
  fields.count("networks", kind.networks);
  fields.not_negative_number("mape", kind.mape);
  fields.not_negative_number("share", kind.share);
  fields.not_negative_number("spread90", kind.spread90);
  fields.not_negative_number("growth", kind.growth);
  fields.numbers("importance", features, kind.importance);
  FLEETFIT_TRY(fields.status());
  FLEETFIT_TRY(read_conditions(json, kind));
  FLEETFIT_TRY(check_range(json, kind));
  FLEETFIT_TRY(read_known(json, kind));
  FLEETFIT_ASSIGN(const auto model_json, json.at("model"));
  FLEETFIT_ASSIGN(auto model, regressor_from_json(model_json, features));
  kind.model = std::move(model);
  return kind;
}

Status read_kinds(const JsonView& json, std::vector<KindModel>& kinds) {
  FLEETFIT_ASSIGN(const auto items, json.items("kinds"));
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(auto kind, read_kind(item));
    if (!kinds.empty() && kinds.back().kind > kind.kind)
      return item.error(fmt::format("kind {} is out of order", kind.kind));
    kinds.push_back(std::move(kind));
  }
  return {};
}

Status read_overhead(const JsonView& json, Overhead& overhead) {
  FLEETFIT_ASSIGN(const auto found, json.at("overhead"));
  Fields fields(found);
  fields.not_negative_number("network_ms", overhead.network_ms);
  fields.not_negative_number("kernel_ms", overhead.kernel_ms);
  // Files that were made before do not have it.
  FLEETFIT_ASSIGN(const auto full_from, found.find("full_from_ms"));
  if (full_from) fields.not_negative_number("full_from_ms", overhead.full_from_ms);
  return fields.status();
}

// Files that were made before do not have it.
Status read_short_networks(const JsonView& json, ShortNetworks& law) {
  FLEETFIT_ASSIGN(const auto found, json.find("short_networks"));
  if (!found) return {};
  Fields fields(*found);
  fields.not_negative_number("below_ms", law.below_ms);
  fields.not_negative_number("least_ms", law.least_ms);
  fields.not_negative_number("power", law.power);
  if (!fields.status()) return fields.status();
  // So that no price becomes 0.
  if (!(law.least_ms > 0) || law.least_ms > law.below_ms || law.power > 1)
    return found->error("least_ms must be above 0 and not above below_ms, power not above 1");
  return {};
}

}  // namespace

nlohmann::json OperatorPredictor::to_json() const {
  auto json = document_head("operators", parts_.identity);
  json["overhead"] = {{"network_ms", parts_.overhead.network_ms},
                      {"kernel_ms", parts_.overhead.kernel_ms}};
  if (parts_.overhead.full_from_ms > 0)
    json["overhead"]["full_from_ms"] = parts_.overhead.full_from_ms;
  if (parts_.short_networks.power > 0) {
    json["short_networks"] = {{"below_ms", parts_.short_networks.below_ms},
                              {"least_ms", parts_.short_networks.least_ms},
                              {"power", parts_.short_networks.power}};
  }
  json["generic"] = parts_.generic.to_json();
  json["generic_spread90"] = parts_.generic_spread90;
  json["network_score90"] = parts_.network_score90;
  json["network_mape"] = parts_.network_mape;
  json["kinds"] = Json::array();
  for (const auto& kind : parts_.kinds) json["kinds"].push_back(predict::to_json(kind));
  return json;
}

Result<std::unique_ptr<KernelPredictor>> OperatorPredictor::from_json(const JsonView& json,
                                                                      Identity identity) {
  Parts parts{.identity = std::move(identity)};
  FLEETFIT_TRY(read_overhead(json, parts.overhead));
  FLEETFIT_TRY(read_short_networks(json, parts.short_networks));
  Fields fields(json);
  fields.linear("generic", cost::generic_feature_names().size(), parts.generic);
  fields.not_negative_number("generic_spread90", parts.generic_spread90);
  fields.not_negative_number("network_score90", parts.network_score90);
  fields.not_negative_number("network_mape", parts.network_mape);
  FLEETFIT_TRY(fields.status());
  FLEETFIT_TRY(read_kinds(json, parts.kinds));
  return std::make_unique<OperatorPredictor>(std::move(parts));
}

}  // namespace fleetfit::predict
