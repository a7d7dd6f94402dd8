#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "fleetfit/core/statistics.h"
#include "fleetfit/core/version.h"
#include "fleetfit/predict/operator_predictor.h"
#include "predict/kernel_rows.h"
#include "predict/kind_training.h"
#include "predict/uncertainty.h"

namespace fleetfit::predict {
namespace {

constexpr std::size_t kLeastNetworks = 3;

class Training {
 public:
  Training(const TrainOptions& options, Profiles profiles, core::ThreadPool& pool)
      : options_(options), random_(options.seed), profiles_(std::move(profiles)), pool_(pool) {}

  Result<OperatorPredictor::Parts> run() {
    FLEETFIT_TRY(fit_generic());
    split_kinds();
    FLEETFIT_ASSIGN(auto dense, fit_dense_networks());
    std::vector<Result<TrainedKind>> kinds(profiles_.kinds.size());
    const KindTraining training{.options = options_,
                                .random = random_,
                                .profiles = profiles_,
                                .generic = parts_.generic,
                                .generic_spread90 = parts_.generic_spread90,
                                .pool = pool_};
    pool_.parallel_for(kinds.size(), [&](std::size_t k) {
      kinds[k] = train_kind(training, profiles_.kinds[k], std::move(dense[k]));
    });
    for (auto& kind : kinds) FLEETFIT_TRY(kind);

    parts_.overhead = profiles_.overhead;
    calibrate(kinds);
    for (auto& kind : kinds) parts_.kinds.push_back(std::move(kind->model));
    return std::move(parts_);
  }

 private:
  Status fit_generic() {
    KernelRows all;
    for (const auto& kind : profiles_.kinds) append(kind.generic(), all);
    FLEETFIT_ASSIGN(const auto fitted, fit_lasso(all.set(profiles_.folds)));
    parts_.generic = dynamic_cast<const LinearModel&>(*fitted.model);
    parts_.generic_spread90 = spread_for_unknown_kinds();
    return {};
  }

  void split_kinds() {
    std::vector<std::vector<KernelRows>> parts(profiles_.kinds.size());
    pool_.parallel_for(parts.size(), [&](std::size_t k) {
      parts[k] = split_by_law(std::move(profiles_.kinds[k]), profiles_.folds);
    });
    profiles_.kinds.clear();
    for (auto& kind : parts)
      for (auto& part : kind) profiles_.kinds.push_back(std::move(part));
  }

  static void append(const KernelRows& rows, KernelRows& all) {
    for (std::size_t i = 0; i < rows.y.size(); ++i) all.add(rows, i);
  }

  // How wrong the generic model is about a kind of which it has seen nothing.
  double spread_for_unknown_kinds() const {
    std::vector<double> spreads;
    for (std::size_t left_out = 0; left_out < profiles_.kinds.size(); ++left_out) {
      KernelRows others;
      for (std::size_t k = 0; k < profiles_.kinds.size(); ++k)
        if (k != left_out) append(profiles_.kinds[k].generic(), others);
      if (others.y.empty()) continue;
      const auto fitted = fit_lasso(others.set(profiles_.folds));
      if (!fitted) continue;
      const auto rows = profiles_.kinds[left_out].generic();
      std::vector<double> prices(rows.y.size());
      fitted->model->predict(rows.rows(), prices);
      for (double& price : prices) price = std::max(price, 1e-6);
      spreads.push_back(*core::quantile(log_errors(prices, rows.y), 0.9));
    }
    return spreads.empty() ? 1 : *core::median(spreads);
  }

  // A network for each kind with rows enough, where they are wanted. All at once: the program that
  // trains them takes long to start.
  Result<std::vector<std::optional<FittedRegressor>>> fit_dense_networks() const {
    std::vector<std::optional<FittedRegressor>> of_kinds(profiles_.kinds.size());
    if (!options_.fit_mlp || !wants(options_, Method::mlp)) return of_kinds;
    std::vector<NamedSet> sets;
    std::vector<std::size_t> places;
    for (std::size_t k = 0; k < of_kinds.size(); ++k) {
      const auto& rows = profiles_.kinds[k];
      if (is_few(rows) || is_few_for_trees(rows)) continue;
      sets.push_back({fmt::format("{} {}", rows.kind, k), rows.set(profiles_.folds)});
      places.push_back(k);
    }
    if (sets.empty()) return of_kinds;
    FLEETFIT_ASSIGN(auto fitted, options_.fit_mlp(sets, random_, pool_));
    for (std::size_t i = 0; i < places.size(); ++i) of_kinds[places[i]] = std::move(fitted[i]);
    return of_kinds;
  }

  // How far kernels lie outside of what the other folds have, as the predictor counts it.
  std::vector<double> beyond_other_folds(const KernelRows& rows, const KindModel& model) const {
    std::vector<Box> others;
    for (int fold = 0; fold < profiles_.folds; ++fold) others.push_back(box_of(rows, fold));
    std::vector<double> beyond(rows.y.size());
    for (std::size_t i = 0; i < beyond.size(); ++i) {
      const Box& box = others[static_cast<std::size_t>(rows.fold[i])];
      beyond[i] = box.low.empty()
                      ? parts_.generic_spread90
                      : model.growth * excess_of(rows.rows().row(i), box.low, box.high).log;
    }
    return beyond;
  }

  // Compares what networks took with what models that did not see them say. What lies outside of
  // their range has wider intervals by itself, here as in the predictor.
  void calibrate(std::vector<Result<TrainedKind>>& kinds) {
    const std::size_t networks = profiles_.latency_ms.size();
    std::vector<double> predicted(networks, 0.0);
    std::vector<double> spread(networks, 0.0);
    std::vector<double> beyond(networks, 0.0);
    const double all =
        std::accumulate(profiles_.latency_ms.begin(), profiles_.latency_ms.end(), 0.0);
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      auto& [model, prices] = *kinds[k];
      const auto outside = beyond_other_folds(profiles_.kinds[k], model);
      for (std::size_t i = 0; i < prices.size(); ++i) {
        const auto n = static_cast<std::size_t>(profiles_.kinds[k].network[i]);
        predicted[n] += prices[i];
        spread[n] += prices[i] * model.spread90;
        beyond[n] += prices[i] * outside[i];
        model.share += profiles_.kinds[k].y[i] / all;
      }
    }
    for (std::size_t n = 0; n < networks; ++n)
      predicted[n] += parts_.overhead.of(profiles_.kernels[n], predicted[n]);
    const auto short_networks = fit_short_networks({.predicted_ms = predicted,
                                                    .measured_ms = profiles_.latency_ms,
                                                    .fold = profiles_.fold,
                                                    .folds = profiles_.folds});
    parts_.short_networks = short_networks.law;
    for (std::size_t n = 0; n < networks; ++n) {
      const double factor = short_networks.held_out_factor[n];
      predicted[n] *= factor;
      spread[n] *= factor;
      beyond[n] *= factor;
    }
    auto scores = log_errors(predicted, profiles_.latency_ms);
    for (std::size_t n = 0; n < networks; ++n) {
      const double left = std::max(scores[n] - beyond[n] / predicted[n], 0.0);
      scores[n] = left / std::max(spread[n] / predicted[n], 1e-9);
    }
    parts_.network_score90 = conformal_score90(std::move(scores));
    parts_.network_mape = mape_percent(predicted, profiles_.latency_ms);
  }

  const TrainOptions& options_;
  core::Random random_;
  Profiles profiles_;
  core::ThreadPool& pool_;
  OperatorPredictor::Parts parts_;
};

}  // namespace

core::Names names_of(Method) {
  static constexpr core::Name kAll[] = {
      {Method::automatic, "auto"},     {Method::lasso, "lasso"}, {Method::random_forest, "rf"},
      {Method::boosted_trees, "gbdt"}, {Method::mlp, "mlp"},     {Method::table, "table"}};
  return {.what = "method", .all = kAll};
}

Result<OperatorPredictor> train_operator_predictor(std::span<const NetworkSample> samples,
                                                   const TrainOptions& options,
                                                   core::ThreadPool& pool) {
  FLEETFIT_TRY(check_samples(samples));
  if (samples.size() < kLeastNetworks) {
    return refuse(fmt::format("{} networks are too few to learn from, at least {} needed",
                              samples.size(), kLeastNetworks));
  }
  if (options.method == Method::mlp && !options.fit_mlp)
    return fail(ErrorCode::unsupported, "this program cannot train dense networks");
  if (options.folds < 2) return refuse("cross-validation needs two folds");
  const int folds = std::min(options.folds, static_cast<int>(samples.size()));
  auto profiles = gather(samples, folds, core::Random(options.seed).split("folds"));
  FLEETFIT_ASSIGN(auto parts, Training(options, std::move(profiles), pool).run());
  parts.identity = options.identity;
  parts.identity.method = to_string(options.method);
  parts.identity.networks = static_cast<int>(samples.size());
  parts.identity.fleetfit_version = core::version();
  parts.identity.feature_version = cost::kFeatureVersion;
  return OperatorPredictor(std::move(parts));
}

}  // namespace fleetfit::predict
