#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cmath>
#include <limits>

#include "fleetfit/predict/network_predictor.h"

namespace fleetfit::predict {
namespace {

constexpr int kPenalties = 13;  // 1e-8, 1e-7, …, 1e4, relative to a feature's mean square

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
    FittedRegressor best;
    double least = std::numeric_limits<double>::infinity();
    double best_penalty = 0;
    for (int k = 0; k < kPenalties; ++k) {
      const double penalty = std::pow(10.0, k - 8);
      auto predictions = cross_validate(penalty);
      const double error = mape_percent(predictions, set_.y);
      if (error >= least) continue;
      least = error;
      best_penalty = penalty;
      best.out_of_fold = std::move(predictions);
    }
    best.model = std::make_unique<LinearModel>(unscaled(solve(all_, best_penalty)));
    best.settings = fmt::format("L2 penalty {:.0e}", best_penalty);
    return best;
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

Result<FittedRegressor> fit_ridge(const TrainingSet& set) {
  FLEETFIT_TRY(check_set(set));
  return Ridge(set).fit();
}

}  // namespace fleetfit::predict
