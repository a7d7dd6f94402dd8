#include "fleetfit/predict/network_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/version.h"
#include "fleetfit/predict/table_model.h"
#include "fleetfit/predict/tree_model.h"
#include "predict/documents.h"
#include "predict/uncertainty.h"

namespace fleetfit::predict {
namespace {

constexpr std::size_t kLeastNetworks = 5;
constexpr std::int64_t kMostFeatures = 1'000'000;

Result<FittedRegressor> fit(const TrainingSet& set, const NetworkTrainOptions& options,
                            core::ThreadPool& pool) {
  const core::Random random(options.seed);
  const auto trees = [&] {
    return fit_boosted_trees(set, random, pool, {.target = BoostTarget::logarithm});
  };
  switch (options.method) {
    case DesignMethod::linear:
      return fit_ridge(set);
    case DesignMethod::trees:
      return trees();
    case DesignMethod::table:
      return fit_table(set);
    default:
      break;
  }
  auto line = fit_ridge(set);
  auto forest = trees();
  if (!line || !forest) return line ? std::move(forest) : std::move(line);
  const bool line_is_better =
      mape_percent(line->out_of_fold, set.y) <= mape_percent(forest->out_of_fold, set.y);
  return line_is_better ? std::move(line) : std::move(forest);
}

constexpr std::size_t kSums = 4;  // sums that a core can overlap
constexpr int kFolds = 5;

}  // namespace

core::Names names_of(DesignMethod) {
  static constexpr core::Name kAll[] = {{DesignMethod::automatic, "auto"},
                                        {DesignMethod::linear, "linear"},
                                        {DesignMethod::trees, "trees"},
                                        {DesignMethod::table, "table"},
                                        {DesignMethod::graph, "graph"}};
  return {.what = "method", .all = kAll};
}

void NetworkPredictor::price(const MatrixView& rows, std::span<double> out) const {
  parts_.model->predict(rows, out);
  for (double& ms : out) ms = std::max(ms, parts_.least_ms / 2);
}

core::Interval NetworkPredictor::interval90(double ms) const { return around(ms, parts_.spread90); }

core::Fields fields_of(const NetworkPredictor::Parts*) {
  using Parts = NetworkPredictor::Parts;
  static constexpr core::Field kAll[] = {FLEETFIT_MEMBERS(Parts, space, encoding, settings),
                                         core::field<&Parts::mape>("mape").from(0),
                                         core::field<&Parts::spread90>("spread90").from(0),
                                         core::field<&Parts::least_ms>("least_ms").above(0)};
  return {.all = kAll};
}

nlohmann::json NetworkPredictor::to_json() const {
  auto json = document("network", parts_.identity, parts_);
  json["features"] = parts_.model->features();
  json["model"] = parts_.model->to_json();
  return json;
}

Result<NetworkPredictor> NetworkPredictor::from_json(const core::JsonView& json) {
  FLEETFIT_ASSIGN(const auto type, read_document_type(json));
  if (type != "network")
    return json.at("type")->error(fmt::format("'{}' is no predictor of whole networks", type));
  FLEETFIT_ASSIGN(auto identity, read_identity(json));
  Parts parts{.identity = std::move(identity)};
  FLEETFIT_TRY(core::read(json, parts));
  FLEETFIT_ASSIGN(const auto features, json.integer("features", {.min = 1, .max = kMostFeatures}));
  FLEETFIT_ASSIGN(const auto model_json, json.at("model"));
  FLEETFIT_ASSIGN(parts.model, regressor_from_json(model_json, static_cast<std::size_t>(features)));
  return NetworkPredictor(std::move(parts));
}

Result<NetworkPredictor> train_network_predictor(const MatrixView& rows,
                                                 std::span<const double> latency_ms,
                                                 const NetworkTrainOptions& options,
                                                 core::ThreadPool& pool) {
  if (latency_ms.size() < kLeastNetworks) {
    return refuse(fmt::format("{} networks are too few to learn from, at least {} needed",
                              latency_ms.size(), kLeastNetworks));
  }
  if (options.folds < 2) return refuse("cross-validation needs two folds");
  const int folds = std::min(options.folds, static_cast<int>(latency_ms.size()));
  const auto fold = deal_folds(latency_ms.size(), folds, core::Random(options.seed).split("folds"));
  const TrainingSet set{.x = rows, .y = latency_ms, .fold = fold, .folds = folds};
  FLEETFIT_ASSIGN(auto fitted, fit(set, options, pool));

  const double least = *std::ranges::min_element(latency_ms);
  for (double& ms : fitted.out_of_fold) ms = std::max(ms, least / 2);
  NetworkPredictor::Parts parts{
      .identity = options.identity,
      .space = options.space,
      .encoding = options.encoding,
      .settings = std::move(fitted.settings),
      .model = std::move(fitted.model),
      .least_ms = least,
      .mape = mape_percent(fitted.out_of_fold, latency_ms),
      .spread90 = conformal_score90(log_errors(fitted.out_of_fold, latency_ms))};
  parts.identity.method = to_string(options.method);
  parts.identity.networks = static_cast<int>(latency_ms.size());
  parts.identity.fleetfit_version = core::version();
  parts.identity.feature_version = cost::kFeatureVersion;
  return NetworkPredictor(std::move(parts));
}

Result<AdditiveTable> AdditiveTable::build(double base_ms,
                                           const std::vector<std::vector<double>>& ms) {
  if (!std::isfinite(base_ms)) return refuse("the base is not finite");
  AdditiveTable table;
  table.base_ms_ = base_ms;
  for (std::size_t gene = 0; gene < ms.size(); ++gene) {
    if (ms[gene].empty()) return refuse(fmt::format("gene {} has no choices", gene));
    if (!std::ranges::all_of(ms[gene], [](double v) { return std::isfinite(v); }))
      return refuse(fmt::format("gene {}: a cost is not finite", gene));
    table.first_.push_back(static_cast<std::uint32_t>(table.ms_.size()));
    table.choices_.push_back(static_cast<std::uint32_t>(ms[gene].size()));
    table.ms_.insert(table.ms_.end(), ms[gene].begin(), ms[gene].end());
  }
  return table;
}

template <class Choice>
void AdditiveTable::add_up(std::span<const Choice> designs, std::span<double> out) const {
  const std::size_t genes = choices_.size();
  const auto cost = [&](std::size_t design, std::size_t gene) {
    const std::uint32_t choice = designs[design * genes + gene];
    return ms_[first_[gene] + std::min(choice, choices_[gene] - 1)];
  };
  std::size_t i = 0;
  for (; i + kSums <= out.size(); i += kSums) {
    std::array<double, kSums> sums;
    sums.fill(base_ms_);
    for (std::size_t gene = 0; gene < genes; ++gene)
      for (std::size_t lane = 0; lane < kSums; ++lane) sums[lane] += cost(i + lane, gene);
    std::ranges::copy(sums, out.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (; i < out.size(); ++i) {
    out[i] = base_ms_;
    for (std::size_t gene = 0; gene < genes; ++gene) out[i] += cost(i, gene);
  }
}

void AdditiveTable::price(std::span<const std::uint16_t> designs, std::span<double> out) const {
  add_up(designs, out);
}

void AdditiveTable::price(std::span<const std::uint8_t> designs, std::span<double> out) const {
  add_up(designs, out);
}

}  // namespace fleetfit::predict
