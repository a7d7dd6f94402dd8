#include "app/search/fitted_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fleetfit/core/statistics.h"
#include "fleetfit/predict/dense_network.h"
#include "fleetfit/predict/network_predictor.h"
#include "fleetfit/predict/tree_model.h"

namespace fleetfit::app {
namespace {

constexpr std::size_t kLeastDesigns = 10;
constexpr int kFolds = 5;

class RegressorSource final : public space::Source {
 public:
  RegressorSource(const space::Space& space, std::size_t encoding,
                  std::unique_ptr<predict::Regressor> model)
      : space_(space), encoding_(encoding), model_(std::move(model)) {}

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    const std::size_t columns = model_->features();
    std::vector<double> rows(designs.size() * columns);
    space_.encode(designs, encoding_, rows);
    model_->predict({.values = rows, .columns = columns}, out);
    return {};
  }

 private:
  const space::Space& space_;
  std::size_t encoding_;
  std::unique_ptr<predict::Regressor> model_;
};

/// The table's designs that have a number, encoded and dealt out to folds.
struct Examples {
  std::size_t columns = 0;
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<int> fold = {};

  predict::TrainingSet set() const {
    return {.x = {.values = x, .columns = columns}, .y = y, .fold = fold, .folds = kFolds};
  }
};

Result<Examples> examples_of(const space::Space& space, std::size_t encoding,
                             const space::DesignTable& table, std::uint64_t seed) {
  Examples examples{.columns = space.encodings()[encoding].features.size()};
  space::Population known(table.designs.genes());
  for (std::size_t row = 0; row < table.designs.size(); ++row) {
    const double value = table.values[0][row];
    if (std::isnan(value)) continue;
    if (value <= 0) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("a predictor is fitted to positive numbers; {} has {}",
                              space.format(table.designs[row]), value));
    }
    known.add(table.designs[row]);
    examples.y.push_back(value);
  }
  if (known.size() < kLeastDesigns) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} designs are too few to fit a predictor to, at least {} are needed",
                            known.size(), kLeastDesigns));
  }
  examples.x.resize(known.size() * examples.columns);
  space.encode(known, encoding, examples.x);
  examples.fold =
      predict::deal_folds(known.size(), kFolds, core::Random(seed).split("fitted source"));
  return examples;
}

struct Ranked {
  predict::FittedRegressor fitted;
  double rank_correlation;
};

Result<Ranked> ranked(Result<predict::FittedRegressor> fitted, std::span<const double> y) {
  FLEETFIT_TRY(fitted);
  // A model that gives all designs one price ranks none of them.
  const auto correlation = core::spearman(fitted->out_of_fold, y);
  return Ranked{*std::move(fitted), correlation.value_or(0)};
}

Result<Ranked> fit(const Examples& examples, const FitOptions& options) {
  const auto set = examples.set();
  const core::Random random(options.seed);
  core::ThreadPool pool(options.threads);
  if (options.method == FitMethod::mlp) {
    // Its first setting has three hidden layers: four dense ones.
    const auto fit_dense = predict::fit_mlp({.trials = 1, .stop = options.stop});
    const predict::NamedSet designs{.name = "designs", .set = set};
    auto fitted = fit_dense(std::span(&designs, 1), random, pool);
    FLEETFIT_TRY(fitted);
    return ranked(std::move(fitted->front()), set.y);
  }
  auto linear = ranked(predict::fit_ridge(set), set.y);
  auto trees = ranked(
      predict::fit_boosted_trees(set, random, pool, {.target = predict::BoostTarget::logarithm}),
      set.y);
  if (!linear || !trees) return linear ? std::move(trees) : std::move(linear);
  return linear->rank_correlation >= trees->rank_correlation ? std::move(linear) : std::move(trees);
}

}  // namespace

Result<FittedSource> fit_source(const space::Space& space, const space::DesignTable& table,
                                const FitOptions& options) {
  FLEETFIT_ASSIGN(const auto encoding, space.find_encoding("one-hot"));
  FLEETFIT_ASSIGN(const auto examples, examples_of(space, encoding, table, options.seed));
  const auto [least, most] = std::ranges::minmax(examples.y);
  if (least == most) {
    return fail(ErrorCode::invalid_input,
                fmt::format("all designs have {}: there is nothing to learn", least));
  }
  auto best = fit(examples, options);
  FLEETFIT_TRY(best);
  return FittedSource{
      .source = std::make_unique<RegressorSource>(space, encoding, std::move(best->fitted.model)),
      .settings = std::move(best->fitted.settings),
      .designs = examples.y.size(),
      .rank_correlation = best->rank_correlation};
}

}  // namespace fleetfit::app
