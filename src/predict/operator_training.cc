#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "fleetfit/core/statistics.h"
#include "fleetfit/core/version.h"
#include "fleetfit/predict/operator_predictor.h"
#include "fleetfit/predict/table_model.h"
#include "fleetfit/predict/tree_model.h"
#include "predict/conformal.h"
#include "predict/kernel_rows.h"
#include "predict/regressors/range.h"
#include "predict/short_networks.h"

namespace fleetfit::predict {
namespace {

constexpr std::size_t kLeastNetworks = 3;
// Fewer kernels than these say how fast a kind is, but not what it depends on.
constexpr std::size_t kLeastRows = 8;
constexpr int kLeastNetworksOfKind = 3;
// Trees need more to split than a line needs to be drawn.
constexpr std::size_t kLeastRowsForTrees = 40;
// A model that is more complicated than the one before has to be better by so much.
constexpr double kWorthIt = 0.97;
constexpr double kWorthItPercent = 0.1;
// What lines may be raised by, and how many networks tell half of it.
constexpr double kMostRaised = 1.5;
constexpr double kNetworksForHalf = 20;
constexpr std::size_t kKnownKernels = 32;
constexpr std::size_t kRowsForImportance = 500;

struct Candidate {
  Method method;
  FittedRegressor fitted;
};

// A kind's model with what the network's calibration needs of it.
struct TrainedKind {
  KindModel model;
  std::vector<double> out_of_fold;
};

TrainingSet set_of(const KernelRows& rows, int folds) {
  return {.x = rows.rows(), .y = rows.y, .fold = rows.fold, .folds = folds};
}

/// The box around rows, empty before the first.
struct Box {
  std::vector<double> low;
  std::vector<double> high;

  void add(std::span<const double> row) {
    if (low.empty()) {
      low.assign(row.begin(), row.end());
      high = low;
    }
    for (std::size_t j = 0; j < row.size(); ++j) {
      low[j] = std::min(low[j], row[j]);
      high[j] = std::max(high[j], row[j]);
    }
  }
};

/// Of all rows, or of those of other folds than one.
Box box_of(const KernelRows& rows, int left_out = -1) {
  Box box;
  for (std::size_t i = 0; i < rows.y.size(); ++i)
    if (rows.fold[i] != left_out) box.add(rows.rows().row(i));
  return box;
}

// Every kernel of the two, in order.
KernelRows some_rows(const KernelRows& rows, std::span<const std::size_t> chosen) {
  KernelRows some{.kind = rows.kind};
  for (const std::size_t i : chosen)
    some.add(rows.rows().row(i), rows.y[i], rows.network[i], rows.fold[i]);
  return some;
}

// Learns from the cheaper part of the kernels what it thinks of the dearer ones: how fast prices
// become wrong outside of what was measured.
double growth_of_errors(const KernelRows& rows, int folds) {
  constexpr double kPart = 0.6;
  constexpr double kFarEnough = 0.2;
  std::vector<std::size_t> order(rows.y.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return rows.y[i]; });
  const auto inner = static_cast<std::size_t>(kPart * static_cast<double>(order.size()));
  const KernelRows cheap = some_rows(rows, std::span(order).first(inner));
  const auto fitted = fit_lasso(set_of(cheap, folds));
  if (!fitted) return 1;
  const Box box = box_of(cheap);
  std::vector<double> slopes;
  for (const std::size_t i : std::span(order).subspan(inner)) {
    const auto row = rows.rows().row(i);
    const double away = excess_of(row, box.low, box.high).log;
    if (away < kFarEnough) continue;
    const double price = std::max(fitted->model->predict_one(row), rows.y[i] * 1e-3);
    slopes.push_back(std::abs(std::log(rows.y[i] / price)) / away);
  }
  return slopes.size() < 5 ? 0.5 : std::min(1.0, *core::quantile(slopes, 0.75));
}

LinearModel scaled(const LinearModel& model, double factor, std::size_t columns) {
  std::vector<double> weights(columns, 0.0);
  for (std::size_t j = 0; j < model.features(); ++j) weights[j] = model.weights()[j] * factor;
  return {model.intercept() * factor, std::move(weights)};
}

class Training {
 public:
  Training(const TrainOptions& options, Profiles profiles, core::ThreadPool& pool)
      : options_(options), random_(options.seed), profiles_(std::move(profiles)), pool_(pool) {}

  Result<OperatorPredictor::Parts> run() {
    FLEETFIT_TRY(fit_generic());
    split_kinds();
    FLEETFIT_ASSIGN(auto dense, fit_dense_networks());
    std::vector<Result<TrainedKind>> kinds(profiles_.kinds.size());
    pool_.parallel_for(kinds.size(), [&](std::size_t k) {
      kinds[k] = train_kind(profiles_.kinds[k], std::move(dense[k]));
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
    FLEETFIT_ASSIGN(const auto fitted, fit_lasso(set_of(all, profiles_.folds)));
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
    for (std::size_t i = 0; i < rows.y.size(); ++i)
      all.add(rows.rows().row(i), rows.y[i], rows.network[i], rows.fold[i]);
  }

  // How wrong the generic model is about a kind of which it has seen nothing.
  double spread_for_unknown_kinds() const {
    std::vector<double> spreads;
    for (std::size_t left_out = 0; left_out < profiles_.kinds.size(); ++left_out) {
      KernelRows others;
      for (std::size_t k = 0; k < profiles_.kinds.size(); ++k)
        if (k != left_out) append(profiles_.kinds[k].generic(), others);
      if (others.y.empty()) continue;
      const auto fitted = fit_lasso(set_of(others, profiles_.folds));
      if (!fitted) continue;
      const auto rows = profiles_.kinds[left_out].generic();
      std::vector<double> prices(rows.y.size());
      fitted->model->predict(rows.rows(), prices);
      for (double& price : prices) price = std::max(price, 1e-6);
      spreads.push_back(*core::quantile(log_errors(prices, rows.y), 0.9));
    }
    return spreads.empty() ? 1 : *core::median(spreads);
  }

  static bool is_few(const KernelRows& rows) {
    return rows.y.size() < kLeastRows || rows.networks() < kLeastNetworksOfKind;
  }

  // A network for each kind with rows enough, where they are wanted. All at once: the program that
  // trains them takes long to start.
  Result<std::vector<std::optional<FittedRegressor>>> fit_dense_networks() const {
    std::vector<std::optional<FittedRegressor>> of_kinds(profiles_.kinds.size());
    if (!options_.fit_mlp || !wants(Method::mlp)) return of_kinds;
    std::vector<NamedSet> sets;
    std::vector<std::size_t> places;
    for (std::size_t k = 0; k < of_kinds.size(); ++k) {
      const auto& rows = profiles_.kinds[k];
      if (is_few(rows) || rows.y.size() < kLeastRowsForTrees) continue;
      sets.push_back({fmt::format("{} {}", rows.kind, k), set_of(rows, profiles_.folds)});
      places.push_back(k);
    }
    if (sets.empty()) return of_kinds;
    FLEETFIT_ASSIGN(auto fitted, options_.fit_mlp(sets, random_, pool_));
    for (std::size_t i = 0; i < places.size(); ++i) of_kinds[places[i]] = std::move(fitted[i]);
    return of_kinds;
  }

  bool wants(Method method) const {
    return options_.method == method || options_.method == Method::automatic;
  }

  Result<TrainedKind> train_kind(const KernelRows& rows,
                                 std::optional<FittedRegressor> dense) const {
    const bool few = is_few(rows);
    FLEETFIT_ASSIGN(auto lasso,
                    core::within(rows.kind, few ? scaled_generic(rows)
                                                : fit_lasso(set_of(rows, profiles_.folds))));
    TrainedKind trained;
    trained.model.guide = dynamic_cast<const LinearModel&>(*lasso.model);
    FLEETFIT_ASSIGN(
        auto best,
        core::within(rows.kind, few ? Result<Candidate>(Candidate{Method::lasso, std::move(lasso)})
                                    : best_of(rows, std::move(lasso), std::move(dense))));
    if (!few && best.method == Method::lasso) raise_to_sums(rows, best.fitted);
    trained.out_of_fold = std::move(best.fitted.out_of_fold);
    const double least = *std::ranges::min_element(rows.y);
    for (double& price : trained.out_of_fold) price = std::max(price, least / 2);
    describe(rows, best, few, trained);
    return trained;
  }

  // Squares of relative errors are least where prices are too low, the more so the more they
  // scatter, and networks of many kernels would be foretold too quick. So lines are raised towards
  // where the kernels that they did not see add up to the share that they have of their networks:
  // half of the way if twenty networks have such kernels, as chance has a part in what few tell,
  // nearly all of it if many have.
  void raise_to_sums(const KernelRows& rows, FittedRegressor& line) const {
    const auto folds = static_cast<std::size_t>(profiles_.folds);
    std::vector<double> measured(folds + 1, 0.0);  // of each fold, and of all
    std::vector<double> foretold(folds + 1, 0.0);
    for (std::size_t i = 0; i < rows.y.size(); ++i) {
      const double latency = profiles_.latency_ms[static_cast<std::size_t>(rows.network[i])];
      for (const std::size_t f : {static_cast<std::size_t>(rows.fold[i]), folds}) {
        measured[f] += rows.y[i] / latency;
        foretold[f] += line.out_of_fold[i] / latency;
      }
    }
    const double networks = rows.networks();
    const double believed = networks / (networks + kNetworksForHalf);
    const auto factor = [&](double is, double was) {
      return was > 0 ? std::pow(std::clamp(is / was, 1 / kMostRaised, kMostRaised), believed) : 1;
    };
    for (std::size_t i = 0; i < rows.y.size(); ++i) {
      const auto f = static_cast<std::size_t>(rows.fold[i]);
      line.out_of_fold[i] *= factor(measured[folds] - measured[f], foretold[folds] - foretold[f]);
    }
    line.model = std::make_unique<LinearModel>(scaled(dynamic_cast<const LinearModel&>(*line.model),
                                                      factor(measured[folds], foretold[folds]),
                                                      rows.columns));
  }

  // The generic model times the factor by which this kind differs from it.
  Result<FittedRegressor> scaled_generic(const KernelRows& rows) const {
    const auto generic = rows.generic();
    std::vector<double> prices(rows.y.size());
    parts_.generic.predict(generic.rows(), prices);
    std::vector<double> factors;
    for (std::size_t i = 0; i < prices.size(); ++i)
      factors.push_back(rows.y[i] / std::max(prices[i], 1e-6));
    const double factor = *core::median(factors);
    for (double& price : prices) price = std::max(price, 1e-6) * factor;
    return FittedRegressor{
        .model = std::make_unique<LinearModel>(scaled(parts_.generic, factor, rows.columns)),
        .out_of_fold = std::move(prices),
        .settings = fmt::format("generic model times {:.3g}", factor)};
  }

  Result<Candidate> best_of(const KernelRows& rows, FittedRegressor lasso,
                            std::optional<FittedRegressor> dense) const {
    Candidate best{Method::lasso, std::move(lasso)};
    if (options_.method == Method::lasso) return best;
    const bool fixed = options_.method != Method::automatic;
    if (rows.y.size() < kLeastRowsForTrees && options_.method != Method::table) return best;
    double least = fixed ? std::numeric_limits<double>::infinity()
                         : mape_percent(best.fitted.out_of_fold, rows.y);
    const auto consider = [&](Method method, FittedRegressor fitted) {
      const double error = mape_percent(fitted.out_of_fold, rows.y);
      if (error >= least * kWorthIt || error > least - kWorthItPercent) return;
      least = error;
      best = {method, std::move(fitted)};
    };
    for (const auto& [method, fit] : fits()) {
      FLEETFIT_ASSIGN(auto fitted,
                      fit(set_of(rows, profiles_.folds), random_.split(rows.kind), pool_));
      consider(method, std::move(fitted));
    }
    if (dense) consider(Method::mlp, *std::move(dense));
    return best;
  }

  // What the method stands for, but for dense networks, which are fitted together.
  std::vector<std::pair<Method, FitRegressor>> fits() const {
    std::vector<std::pair<Method, FitRegressor>> fits;
    if (wants(Method::boosted_trees)) {
      fits.emplace_back(Method::boosted_trees,
                        [&](const auto& set, const auto& random, auto& pool) {
                          return fit_boosted_trees(set, random, pool, options_.boost);
                        });
    }
    if (wants(Method::random_forest)) {
      fits.emplace_back(Method::random_forest,
                        [&](const auto& set, const auto& random, auto& pool) {
                          return fit_forest(set, random, pool, options_.forest);
                        });
    }
    if (options_.method == Method::table) {
      fits.emplace_back(Method::table, [](const auto& set, const auto& /*random*/, auto& /*pool*/) {
        return fit_table(set);
      });
    }
    return fits;
  }

  void describe(const KernelRows& rows, Candidate& chosen, bool few, TrainedKind& trained) const {
    KindModel& model = trained.model;
    model.kind = rows.kind;
    model.when = rows.when;
    model.method = few ? "generic" : to_string(chosen.method);
    model.settings = std::move(chosen.fitted.settings);
    model.model = std::move(chosen.fitted.model);
    Box box = box_of(rows);
    model.low = std::move(box.low);
    model.high = std::move(box.high);
    model.least_ms = *std::ranges::min_element(rows.y);
    model.samples = static_cast<int>(rows.y.size());
    model.networks = rows.networks();
    model.mape = mape_percent(trained.out_of_fold, rows.y);
    model.spread90 = conformal_score90(log_errors(trained.out_of_fold, rows.y));
    if (few) model.spread90 = std::max(model.spread90, parts_.generic_spread90 / 2);
    model.growth = few ? 1 : growth_of_errors(rows, profiles_.folds);
    const auto some = MatrixView{.values = std::span(rows.x).first(
                                     std::min(rows.y.size(), kRowsForImportance) * rows.columns),
                                 .columns = rows.columns};
    model.importance = importance(*model.model, some, random_.split("importance"));
    model.known = spread_out(rows, kKnownKernels);
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
    const auto short_networks = fit_short_networks({.foretold_ms = predicted,
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
    return fail(ErrorCode::invalid_input,
                fmt::format("{} networks are too few to learn from, at least {} needed",
                            samples.size(), kLeastNetworks));
  }
  if (options.method == Method::mlp && !options.fit_mlp)
    return fail(ErrorCode::unsupported, "this program cannot train dense networks");
  if (options.folds < 2) return fail(ErrorCode::invalid_input, "cross-validation needs two folds");
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
