#include "predict/kind_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/core/counting.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/predict/table_model.h"
#include "fleetfit/predict/tree_model.h"
#include "predict/uncertainty.h"

namespace fleetfit::predict {
namespace {

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

// Every kernel of the two, in order.
KernelRows some_rows(const KernelRows& rows, std::span<const std::size_t> chosen) {
  KernelRows some{.kind = rows.kind};
  for (const std::size_t i : chosen) some.add(rows, i);
  return some;
}

// Learns from the cheaper part of the kernels what it thinks of the dearer ones: how fast prices
// become wrong outside of what was measured.
double growth_of_errors(const KernelRows& rows, int folds) {
  constexpr double kPart = 0.6;
  constexpr double kFarEnough = 0.2;
  auto order = core::counting(rows.y.size());
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return rows.y[i]; });
  const auto inner = static_cast<std::size_t>(kPart * static_cast<double>(order.size()));
  const KernelRows cheap = some_rows(rows, std::span(order).first(inner));
  const auto fitted = fit_lasso(cheap.set(folds));
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

class KindTrainer {
 public:
  KindTrainer(const KindTraining& training, const KernelRows& rows)
      : training_(training), rows_(rows), set_(rows_.set(training.profiles.folds)) {}

  Result<TrainedKind> train(std::optional<FittedRegressor> dense) const {
    const bool few = is_few(rows_);
    FLEETFIT_ASSIGN(auto lasso, few ? scaled_generic() : fit_lasso(set_));
    TrainedKind trained;
    trained.model.guide = dynamic_cast<const LinearModel&>(*lasso.model);
    FLEETFIT_ASSIGN(auto best, few ? Candidate{Method::lasso, std::move(lasso)}
                                   : best_of(std::move(lasso), std::move(dense)));
    if (!few && best.method == Method::lasso) raise_to_sums(best.fitted);
    trained.out_of_fold = std::move(best.fitted.out_of_fold);
    const double least = *std::ranges::min_element(rows_.y);
    for (double& price : trained.out_of_fold) price = std::max(price, least / 2);
    describe(best, few, trained);
    return trained;
  }

 private:
  // Squares of relative errors are least where prices are too low, the more so the more they
  // scatter, and networks of many kernels would be predicted too quick. So lines are raised towards
  // where the kernels that they did not see add up to the share that they have of their networks.
  // They go half of the way if twenty networks have such kernels, as chance has a part in what few
  // show, and nearly all of it if many have.
  void raise_to_sums(FittedRegressor& line) const {
    const auto folds = static_cast<std::size_t>(training_.profiles.folds);
    std::vector<double> measured(folds + 1, 0.0);  // of each fold, and of all
    std::vector<double> predicted(folds + 1, 0.0);
    for (std::size_t i = 0; i < rows_.y.size(); ++i) {
      const double latency =
          training_.profiles.latency_ms[static_cast<std::size_t>(rows_.network[i])];
      for (const std::size_t f : {static_cast<std::size_t>(rows_.fold[i]), folds}) {
        measured[f] += rows_.y[i] / latency;
        predicted[f] += line.out_of_fold[i] / latency;
      }
    }
    const double networks = rows_.networks();
    const double weight = networks / (networks + kNetworksForHalf);
    const auto factor = [&](double is, double was) {
      return was > 0 ? std::pow(std::clamp(is / was, 1 / kMostRaised, kMostRaised), weight) : 1;
    };
    for (std::size_t i = 0; i < rows_.y.size(); ++i) {
      const auto f = static_cast<std::size_t>(rows_.fold[i]);
      line.out_of_fold[i] *= factor(measured[folds] - measured[f], predicted[folds] - predicted[f]);
    }
    line.model = std::make_unique<LinearModel>(scaled(dynamic_cast<const LinearModel&>(*line.model),
                                                      factor(measured[folds], predicted[folds]),
                                                      rows_.columns));
  }

  // The generic model times the factor by which this kind differs from it.
  Result<FittedRegressor> scaled_generic() const {
    const auto generic = rows_.generic();
    std::vector<double> prices(rows_.y.size());
    training_.generic.predict(generic.rows(), prices);
    std::vector<double> factors;
    for (std::size_t i = 0; i < prices.size(); ++i)
      factors.push_back(rows_.y[i] / std::max(prices[i], 1e-6));
    const double factor = *core::median(factors);
    for (double& price : prices) price = std::max(price, 1e-6) * factor;
    return FittedRegressor{
        .model = std::make_unique<LinearModel>(scaled(training_.generic, factor, rows_.columns)),
        .out_of_fold = std::move(prices),
        .settings = fmt::format("generic model times {:.3g}", factor)};
  }

  Result<Candidate> best_of(FittedRegressor lasso, std::optional<FittedRegressor> dense) const {
    Candidate best{Method::lasso, std::move(lasso)};
    if (training_.options.method == Method::lasso) return best;
    const bool fixed = training_.options.method != Method::automatic;
    if (is_few_for_trees(rows_) && training_.options.method != Method::table) return best;
    double least = fixed ? std::numeric_limits<double>::infinity()
                         : mape_percent(best.fitted.out_of_fold, rows_.y);
    const auto consider = [&](Method method, FittedRegressor fitted) {
      const double error = mape_percent(fitted.out_of_fold, rows_.y);
      if (error >= least * kWorthIt || error > least - kWorthItPercent) return;
      least = error;
      best = {method, std::move(fitted)};
    };
    for (const auto& [method, fit] : fits()) {
      FLEETFIT_ASSIGN(auto fitted, fit(set_, training_.random.split(rows_.kind), training_.pool));
      consider(method, std::move(fitted));
    }
    if (dense) consider(Method::mlp, *std::move(dense));
    return best;
  }

  // What the method stands for, but for dense networks, which are fitted together.
  std::vector<std::pair<Method, FitRegressor>> fits() const {
    std::vector<std::pair<Method, FitRegressor>> fits;
    if (wants(training_.options, Method::boosted_trees)) {
      fits.emplace_back(Method::boosted_trees,
                        [&](const auto& set, const auto& random, auto& pool) {
                          return fit_boosted_trees(set, random, pool, training_.options.boost);
                        });
    }
    if (wants(training_.options, Method::random_forest)) {
      fits.emplace_back(Method::random_forest,
                        [&](const auto& set, const auto& random, auto& pool) {
                          return fit_forest(set, random, pool, training_.options.forest);
                        });
    }
    if (training_.options.method == Method::table) {
      fits.emplace_back(Method::table, [](const auto& set, const auto& /*random*/, auto& /*pool*/) {
        return fit_table(set);
      });
    }
    return fits;
  }

  void describe(Candidate& chosen, bool few, TrainedKind& trained) const {
    KindModel& model = trained.model;
    model.kind = rows_.kind;
    model.when = rows_.when;
    model.method = few ? "generic" : to_string(chosen.method);
    model.settings = std::move(chosen.fitted.settings);
    model.model = std::move(chosen.fitted.model);
    Box box = box_of(rows_);
    model.low = std::move(box.low);
    model.high = std::move(box.high);
    model.least_ms = *std::ranges::min_element(rows_.y);
    model.samples = static_cast<int>(rows_.y.size());
    model.networks = rows_.networks();
    model.mape = mape_percent(trained.out_of_fold, rows_.y);
    model.spread90 = conformal_score90(log_errors(trained.out_of_fold, rows_.y));
    if (few) model.spread90 = std::max(model.spread90, training_.generic_spread90 / 2);
    model.growth = few ? 1 : growth_of_errors(rows_, training_.profiles.folds);
    const auto some = MatrixView{.values = std::span(rows_.x).first(
                                     std::min(rows_.y.size(), kRowsForImportance) * rows_.columns),
                                 .columns = rows_.columns};
    model.importance = importance(*model.model, some, training_.random.split("importance"));
    model.known = spread_out(rows_, kKnownKernels);
  }

  const KindTraining& training_;
  const KernelRows& rows_;
  TrainingSet set_;
};

}  // namespace

Box box_of(const KernelRows& rows, int left_out) {
  Box box;
  for (std::size_t i = 0; i < rows.y.size(); ++i)
    if (rows.fold[i] != left_out) box.add(rows.rows().row(i));
  return box;
}

bool wants(const TrainOptions& options, Method method) {
  return options.method == method || options.method == Method::automatic;
}

bool is_few(const KernelRows& rows) {
  return rows.y.size() < kLeastRows || rows.networks() < kLeastNetworksOfKind;
}

bool is_few_for_trees(const KernelRows& rows) { return rows.y.size() < kLeastRowsForTrees; }

Result<TrainedKind> train_kind(const KindTraining& training, const KernelRows& rows,
                               std::optional<FittedRegressor> dense) {
  return core::within(rows.kind, KindTrainer(training, rows).train(std::move(dense)));
}

namespace {

// Fewer networks than this on one side tell chance from a law no better than a guess does.
constexpr std::size_t kLeastNetworksForLaw = 20;
// Data in caches makes nothing faster than this: half of the length, an eighth less time.
constexpr double kMostPower = 0.2;
// What makes half of the length three thousandths quicker is nothing.
constexpr double kLeastPower = 0.005;

/// The networks outside of one fold; all of them for -1.
struct Pairs {
  std::vector<double> predicted;
  std::vector<double> measured;
};

Pairs outside(const HeldOutNetworks& networks, int fold) {
  Pairs pairs;
  for (std::size_t n = 0; n < networks.fold.size(); ++n) {
    if (networks.fold[n] == fold) continue;
    pairs.predicted.push_back(networks.predicted_ms[n]);
    pairs.measured.push_back(networks.measured_ms[n]);
  }
  return pairs;
}

double error_of(const ShortNetworks& law, const Pairs& pairs) {
  double sum = 0;
  for (std::size_t n = 0; n < pairs.predicted.size(); ++n) {
    const double predicted = pairs.predicted[n];
    sum += std::abs(predicted * law.factor(predicted) / pairs.measured[n] - 1);
  }
  return sum;
}

/// The slope of the logarithms' errors below a latency, beside a common error of all networks,
/// which is none of the short ones' and stays as it is.
double power_below(double below_ms, const Pairs& pairs) {
  const auto count = static_cast<double>(pairs.predicted.size());
  double z = 0;
  double r = 0;
  double zz = 0;
  double zr = 0;
  for (std::size_t n = 0; n < pairs.predicted.size(); ++n) {
    const double short_by = std::min(0.0, std::log(pairs.predicted[n] / below_ms));
    const double error = std::log(pairs.measured[n] / pairs.predicted[n]);
    z += short_by;
    r += error;
    zz += short_by * short_by;
    zr += short_by * error;
  }
  const double spread = zz - z * z / count;
  const double power = spread > 0 ? (zr - z * r / count) / spread : 0;
  return power < kLeastPower ? 0 : std::min(power, kMostPower);
}

// The law with the least error of those that differ in what they call short. There is no test
// whether it is there at all: thirty networks hardly ever prove it, most of them being long, but a
// slope that chance made is small, and going without one costs much more where there is a law.
ShortNetworks fit(const Pairs& pairs) {
  ShortNetworks best;
  double least = std::numeric_limits<double>::infinity();
  const double shortest = *std::ranges::min_element(pairs.predicted);
  for (const double share : {0.2, 0.3, 0.4, 0.5, 0.6, 0.7}) {
    const double below = *core::quantile(pairs.predicted, share);
    const ShortNetworks law{
        .below_ms = below, .least_ms = shortest, .power = power_below(below, pairs)};
    const double error = error_of(law, pairs);
    if (error >= least) continue;
    least = error;
    best = law;
  }
  return best;
}

}  // namespace

FittedShortNetworks fit_short_networks(const HeldOutNetworks& networks) {
  const std::size_t count = networks.fold.size();
  FittedShortNetworks fitted{.law = {}, .held_out_factor = std::vector<double>(count, 1.0)};
  if (count < kLeastNetworksForLaw) return fitted;
  fitted.law = fit(outside(networks, -1));
  for (int fold = 0; fold < networks.folds; ++fold) {
    const auto law = fit(outside(networks, fold));
    for (std::size_t n = 0; n < count; ++n)
      if (networks.fold[n] == fold)
        fitted.held_out_factor[n] = law.factor(networks.predicted_ms[n]);
  }
  return fitted;
}

}  // namespace fleetfit::predict
