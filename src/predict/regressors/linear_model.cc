#include "fleetfit/predict/linear_model.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fleetfit/core/statistics.h"
#include "predict/documents.h"

namespace fleetfit::predict {
namespace {

/// Of predictions for all rows, one list for each setting, those with the least error.
std::size_t least_error(std::span<const std::vector<double>> predictions, const TrainingSet& set) {
  const auto best = std::ranges::min_element(
      predictions, {}, [&](const auto& predicted) { return mape_percent(predicted, set.y); });
  return static_cast<std::size_t>(best - predictions.begin());
}

constexpr int kMostSweeps = 20'000;
constexpr double kSmallestStep = 1e-11;

// The squared percentage error as a quadratic form, 1/2 w'Gw - c'w: all that coordinate descent
// needs to know of the rows. The last coordinate is the intercept.
struct Moments {
  explicit Moments(std::size_t size) : gram(size * size), target(size) {}

  std::size_t size() const { return target.size(); }
  double at(std::size_t i, std::size_t j) const { return gram[i * size() + j]; }

  void add(std::span<const double> z) {
    for (std::size_t i = 0; i < size(); ++i) {
      for (std::size_t j = 0; j < size(); ++j) gram[i * size() + j] += z[i] * z[j];
      target[i] += z[i];
    }
    rows += 1;
  }
  void subtract(const Moments& other) {
    for (std::size_t i = 0; i < gram.size(); ++i) gram[i] -= other.gram[i];
    for (std::size_t i = 0; i < target.size(); ++i) target[i] -= other.target[i];
    rows -= other.rows;
  }

  std::vector<double> gram;
  std::vector<double> target;
  double rows = 0;
};

// One sweep over all coordinates; gives the largest change in terms of predictions.
double sweep(const Moments& moments, double alpha, std::vector<double>& w) {
  const std::size_t intercept = w.size() - 1;
  double largest = 0;
  for (std::size_t j = 0; j < w.size(); ++j) {
    const double curvature = moments.at(j, j);
    if (curvature <= 0) continue;
    double slope = moments.target[j];
    for (std::size_t k = 0; k < w.size(); ++k) slope -= moments.at(j, k) * w[k];
    const double penalty = j == intercept ? 0 : alpha / 2 * moments.rows;
    const double better = std::max(0.0, w[j] + (slope - penalty) / curvature);
    largest = std::max(largest, std::abs(better - w[j]) * std::sqrt(curvature / moments.rows));
    w[j] = better;
  }
  return largest;
}

void descend(const Moments& moments, double alpha, std::vector<double>& w) {
  if (moments.rows <= 0) return;
  for (int i = 0; i < kMostSweeps; ++i)
    if (sweep(moments, alpha, w) < kSmallestStep) return;
}

// From the strongest penalty to the weakest: each solution is a good start for the next.
std::vector<std::vector<double>> path(const Moments& moments, std::span<const double> alphas) {
  std::vector<std::vector<double>> weights;
  std::vector<double> w(moments.size(), 0.0);
  for (const double alpha : alphas) {
    descend(moments, alpha, w);
    weights.push_back(w);
  }
  return weights;
}

std::vector<double> falling_grid(const LassoOptions& options) {
  std::vector<double> alphas;
  const double low = std::log(options.lowest_alpha);
  const double high = std::log(options.highest_alpha);
  for (int i = 0; i < options.alphas; ++i)
    alphas.push_back(std::exp(high + (low - high) * i / std::max(1, options.alphas - 1)));
  return alphas;
}

// What brings features and times to a common scale.
struct Scales {
  std::vector<double> feature;  // 0 for one that is constant
  double y = 1;
};

Scales scales_of(const TrainingSet& set) {
  Scales scales{.feature = std::vector<double>(set.x.columns, 0.0)};
  const auto rows = static_cast<double>(set.x.rows());
  for (std::size_t j = 0; j < set.x.columns; ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < set.x.rows(); ++i) sum += set.x.row(i)[j];
    double squares = 0;
    for (std::size_t i = 0; i < set.x.rows(); ++i) {
      const double away = set.x.row(i)[j] - sum / rows;
      squares += away * away;
    }
    const double deviation = std::sqrt(squares / rows);
    if (deviation > 1e-12 * std::abs(sum / rows)) scales.feature[j] = 1 / deviation;
  }
  scales.y = *core::median(set.y);
  return scales;
}

// A row as the quadratic form takes it: everything divided by the row's time.
void scale_row(const TrainingSet& set, std::size_t i, const Scales& scales, std::span<double> z) {
  const double y = set.y[i] / scales.y;
  const auto x = set.x.row(i);
  for (std::size_t j = 0; j < x.size(); ++j) z[j] = x[j] * scales.feature[j] / y;
  z[x.size()] = 1 / y;
}

class Lasso {
 public:
  Lasso(const TrainingSet& set, const LassoOptions& options)
      : set_(set), alphas_(falling_grid(options)), scales_(scales_of(set)) {
    add_up_moments();
  }

  FittedRegressor fit() {
    auto predictions = cross_validate();
    const auto best = least_error(predictions, set_);
    const auto weights = path(all_, std::span(alphas_).first(best + 1)).back();
    return {.model = std::make_unique<LinearModel>(unscaled(weights)),
            .out_of_fold = std::move(predictions[best]),
            .settings = fmt::format("alpha {:.2g}", alphas_[best])};
  }

 private:
  void add_up_moments() {
    const std::size_t size = set_.x.columns + 1;
    all_ = Moments(size);
    folds_.assign(static_cast<std::size_t>(set_.folds), Moments(size));
    std::vector<double> z(size);
    for (std::size_t i = 0; i < set_.x.rows(); ++i) {
      scale_row(set_, i, scales_, z);
      all_.add(z);
      folds_[static_cast<std::size_t>(set_.fold[i])].add(z);
    }
  }

  // For each alpha the prediction of every row by the model that did not see it.
  std::vector<std::vector<double>> cross_validate() const {
    std::vector<std::vector<double>> predictions(alphas_.size(),
                                                 std::vector<double>(set_.x.rows()));
    for (std::size_t f = 0; f < folds_.size(); ++f) {
      Moments seen = all_;
      seen.subtract(folds_[f]);
      const auto weights = path(seen.rows > 0 ? seen : all_, alphas_);
      for (std::size_t a = 0; a < alphas_.size(); ++a)
        predict_fold(static_cast<int>(f), unscaled(weights[a]), predictions[a]);
    }
    return predictions;
  }

  void predict_fold(int fold, const LinearModel& model, std::span<double> out) const {
    for (std::size_t i = 0; i < set_.x.rows(); ++i)
      if (set_.fold[i] == fold) out[i] = model.predict_one(set_.x.row(i));
  }

  LinearModel unscaled(std::span<const double> w) const {
    std::vector<double> weights(set_.x.columns);
    for (std::size_t j = 0; j < weights.size(); ++j)
      weights[j] = w[j] * scales_.feature[j] * scales_.y;
    return {w.back() * scales_.y, std::move(weights)};
  }

  const TrainingSet& set_;
  std::vector<double> alphas_;
  Scales scales_;
  Moments all_{0};
  std::vector<Moments> folds_;
};

constexpr int kPenalties = 13;

// 1e-8, 1e-7, …, 1e4, relative to a feature's mean square.
double penalty_of(int number) { return std::pow(10.0, number - 8); }

// Normal equations of the squared percentage error; the last unknown is the intercept.
struct Equations {
  Eigen::MatrixXd matrix;
  Eigen::VectorXd target;

  explicit Equations(Eigen::Index size)
      : matrix(Eigen::MatrixXd::Zero(size, size)), target(Eigen::VectorXd::Zero(size)) {}
};

// Columns are centred and divided by their deviation, so that the penalty treats them alike.
struct Scaling {
  Eigen::VectorXd mean;
  Eigen::VectorXd scale;
};

Eigen::Index columns_of(const TrainingSet& set) { return static_cast<Eigen::Index>(set.x.columns); }

Eigen::Map<const Eigen::VectorXd> row_of(const TrainingSet& set, std::size_t i) {
  return {set.x.row(i).data(), columns_of(set)};
}

Scaling scaling_of(const TrainingSet& set) {
  Scaling scaling{.mean = Eigen::VectorXd::Zero(columns_of(set)),
                  .scale = Eigen::VectorXd::Zero(columns_of(set))};
  const auto rows = static_cast<double>(set.x.rows());
  for (std::size_t i = 0; i < set.x.rows(); ++i) scaling.mean += row_of(set, i) / rows;
  Eigen::VectorXd squares = Eigen::VectorXd::Zero(columns_of(set));
  for (std::size_t i = 0; i < set.x.rows(); ++i)
    squares += (row_of(set, i) - scaling.mean).cwiseAbs2() / rows;
  for (Eigen::Index j = 0; j < squares.size(); ++j)
    if (squares[j] > 0) scaling.scale[j] = 1 / std::sqrt(squares[j]);
  return scaling;
}

class Ridge {
 public:
  explicit Ridge(const TrainingSet& set)
      : set_(set), scaling_(scaling_of(set)), all_(columns_of(set) + 1) {
    folds_.assign(static_cast<std::size_t>(set.folds), all_);
    for (std::size_t i = 0; i < set.x.rows(); ++i) {
      const Eigen::VectorXd z = scaled(i) / set.y[i];
      auto& fold = folds_[static_cast<std::size_t>(set.fold[i])];
      fold.matrix.selfadjointView<Eigen::Lower>().rankUpdate(z);
      fold.target += z;
    }
    for (const auto& fold : folds_) {
      all_.matrix += fold.matrix;
      all_.target += fold.target;
    }
  }

  FittedRegressor fit() const {
    std::vector<std::vector<double>> predictions;
    for (int k = 0; k < kPenalties; ++k) predictions.push_back(cross_validate(penalty_of(k)));
    const auto best = least_error(predictions, set_);
    const double penalty = penalty_of(static_cast<int>(best));
    return {.model = std::make_unique<LinearModel>(unscaled(solve(all_, penalty))),
            .out_of_fold = std::move(predictions[best]),
            .settings = fmt::format("L2 penalty {:.0e}", penalty)};
  }

 private:
  Eigen::VectorXd scaled(std::size_t i) const {
    Eigen::VectorXd z(columns_of(set_) + 1);
    z.head(columns_of(set_)) = (row_of(set_, i) - scaling_.mean).cwiseProduct(scaling_.scale);
    z[columns_of(set_)] = 1;
    return z;
  }

  static Eigen::VectorXd solve(const Equations& equations, double penalty) {
    const Eigen::Index size = equations.target.size();
    Eigen::MatrixXd matrix = equations.matrix;
    const double weight = matrix(size - 1, size - 1);  // what a feature of mean square 1 has
    for (Eigen::Index j = 0; j + 1 < size; ++j) matrix(j, j) += penalty * weight;
    return matrix.selfadjointView<Eigen::Lower>().ldlt().solve(equations.target);
  }

  std::vector<double> cross_validate(double penalty) const {
    std::vector<double> predictions(set_.x.rows());
    for (std::size_t f = 0; f < folds_.size(); ++f) {
      Equations seen = all_;
      seen.matrix -= folds_[f].matrix;
      seen.target -= folds_[f].target;
      const Eigen::VectorXd weights = solve(seen, penalty);
      for (std::size_t i = 0; i < set_.x.rows(); ++i)
        if (set_.fold[i] == static_cast<int>(f)) predictions[i] = scaled(i).dot(weights);
    }
    return predictions;
  }

  LinearModel unscaled(const Eigen::VectorXd& z) const {
    const Eigen::VectorXd w = z.head(columns_of(set_)).cwiseProduct(scaling_.scale);
    return {z[columns_of(set_)] - w.dot(scaling_.mean), {w.begin(), w.end()}};
  }

  const TrainingSet& set_;
  Scaling scaling_;
  Equations all_;
  std::vector<Equations> folds_;
};

}  // namespace

void LinearModel::predict(const MatrixView& rows, std::span<double> out) const {
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const auto row = rows.row(i);
    out[i] = std::inner_product(row.begin(), row.end(), weights_.begin(), intercept_);
  }
}

nlohmann::json LinearModel::to_json() const {
  return {{"type", "linear"}, {"intercept", intercept_}, {"weights", weights_}};
}

Result<std::unique_ptr<Regressor>> LinearModel::from_json(const core::JsonView& json,
                                                          std::size_t features) {
  FLEETFIT_ASSIGN(const auto intercept, json.number("intercept"));
  FLEETFIT_ASSIGN(auto weights, numbers_of_length(json, "weights", features));
  return std::make_unique<LinearModel>(intercept, std::move(weights));
}

Result<FittedRegressor> fit_lasso(const TrainingSet& set, const LassoOptions& options) {
  FLEETFIT_TRY(check_set(set));
  if (!(options.lowest_alpha > 0) || !(options.highest_alpha >= options.lowest_alpha) ||
      options.alphas < 1) {
    return refuse(fmt::format("no grid of {} penalties goes from {} to {}", options.alphas,
                              options.lowest_alpha, options.highest_alpha));
  }
  return Lasso(set, options).fit();
}

Result<FittedRegressor> fit_ridge(const TrainingSet& set) {
  FLEETFIT_TRY(check_set(set));
  return Ridge(set).fit();
}

}  // namespace fleetfit::predict
