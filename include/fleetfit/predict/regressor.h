#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/thread_pool.h"

/// From rows of numbers to one number: the models behind all predictors, without knowledge of
/// kernels or networks.
namespace fleetfit::predict {

/// Rows of equal length, one after the other. Borrows the numbers.
struct MatrixView {
  std::span<const double> values = {};
  std::size_t columns = 0;

  std::size_t rows() const { return columns == 0 ? 0 : values.size() / columns; }
  std::span<const double> row(std::size_t i) const { return values.subspan(i * columns, columns); }
};

/// A fitted model. Immutable; safe to use from many threads.
class Regressor {
 public:
  virtual ~Regressor() = default;

  /// Numbers in a row.
  virtual std::size_t features() const = 0;

  /// One number for each row; `rows.columns` is `features()` and `out` has a place for each row.
  virtual void predict(const MatrixView& rows, std::span<double> out) const = 0;

  double predict_one(std::span<const double> row) const;

  /// False if the model can but guess for this row, as a table does for one without an entry.
  virtual bool knows(std::span<const double> row) const;

  /// The object that `regressor_from_json` reads; its "type" names the model.
  virtual nlohmann::json to_json() const = 0;
};

/// Reads any model by its "type": "linear", "trees", "product", "table", "mlp". Everything is
/// checked, so that no file makes a prediction crash. `features` is the length that rows will have.
/// Errors are `invalid_input` and name the field.
Result<std::unique_ptr<Regressor>> regressor_from_json(const core::JsonView& json,
                                                       std::size_t features);

/// What a model is fitted to. `y` is positive. Rows of one fold are held out together in
/// cross-validation; folds are counted from 0. Borrows everything.
struct TrainingSet {
  MatrixView x = {};
  std::span<const double> y = {};
  std::span<const int> fold = {};
  int folds = 0;
};

/// Deals rows out to folds, at random and as evenly as can be.
std::vector<int> deal_folds(std::size_t rows, int folds, core::Random random);

/// A model with the prediction of each row by a model that was fitted without the row's fold, with
/// the same settings: what its errors and intervals are computed from.
struct FittedRegressor {
  std::unique_ptr<Regressor> model;
  std::vector<double> out_of_fold;
  std::string settings;  ///< chosen by cross-validation, for people: "trees 120, depth 6"
};

/// Fits a model: chooses its settings by cross-validation over the set's folds, then fits to all
/// rows. Gives the same model whatever the number of threads. Fails with `invalid_input` if rows or
/// folds do not fit together, naming the row of a value that is not finite or not positive, and
/// with `internal` if a library does.
using FitRegressor = std::function<Result<FittedRegressor>(
    const TrainingSet& set, const core::Random& random, core::ThreadPool& pool)>;

struct NamedSet {
  std::string name;
  TrainingSet set;
};

/// Fits a model to each of several sets, whose names are all different, as `FitRegressor` does to
/// one. The models are in the order of the sets.
using FitRegressors = std::function<Result<std::vector<FittedRegressor>>(
    std::span<const NamedSet> sets, const core::Random& random, core::ThreadPool& pool)>;

/// How much the model's answers for these rows depend on each feature: the mean relative change of
/// an answer when the feature is taken from another row, as shares of their sum.
std::vector<double> importance(const Regressor& model, const MatrixView& rows,
                               const core::Random& random);

/// The error in percent that all choices minimize: the mean of |predicted - measured| / measured.
/// Both have the same length, and measured values are positive.
double mape_percent(std::span<const double> predicted, std::span<const double> measured);

/// Fails as `FitRegressor` says if the set is no set.
Status check_set(const TrainingSet& set);

}  // namespace fleetfit::predict
