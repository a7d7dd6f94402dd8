#include "transfer/correction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fleetfit/core/statistics.h"
#include "transfer/lasso_path.h"

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Rows = std::vector<Index>;

constexpr double kLeastShare = 1e-4;  // of the largest lambda
constexpr int kMostFolds = 10;
constexpr int kRobustRounds = 2;
constexpr double kOutlier = 1.5;            // standard deviations
constexpr double kDeviationOfMad = 1.4826;  // of a normal distribution
constexpr double kNothing = 1e-12;

std::span<const double> span_of(const VectorXd& v) {
  return {v.data(), static_cast<std::size_t>(v.size())};
}

/// -1 where no order is defined, which is never better than another.
double srcc_or_worst(const VectorXd& x, const VectorXd& y) {
  return core::spearman(span_of(x), span_of(y)).value_or(-1.0);
}

/// By which samples are divided, so that lambda means the same for every device.
double size_of(const VectorXd& v) {
  const double size = v.norm() / std::sqrt(static_cast<double>(v.size()));
  return size > 0 ? size : 1;
}

std::vector<double> falling_shares(int count) {
  std::vector<double> shares;
  for (int i = 0; i < count; ++i)
    shares.push_back(std::pow(kLeastShare, static_cast<double>(i) / std::max(1, count - 1)));
  return shares;
}

/// Models for all lambdas, fitted to some of the samples.
struct PathModels {
  std::vector<double> lambdas;
  MatrixXd coefficients;  // a column for each lambda
  VectorXd constants;
  VectorXd alphas;

  VectorXd answers(const MatrixXd& basis, const VectorXd& proxy, Index row) const {
    return constants + proxy[row] * alphas + coefficients.transpose() * basis.row(row).transpose();
  }
};

/// Constant and alpha are free, so they are projected out first: what is left is a plain lasso.
PathModels fit_path(const VectorXd& proxy, const MatrixXd& basis, const VectorXd& target,
                    std::span<const double> shares) {
  const VectorXd mean = basis.colwise().mean().transpose();
  MatrixXd x = basis.rowwise() - mean.transpose();
  VectorXd y = target.array() - target.mean();
  const VectorXd p = proxy.array() - proxy.mean();
  const double square = p.squaredNorm();
  const bool has_order = square > kNothing * proxy.squaredNorm();
  VectorXd shadow = VectorXd::Zero(basis.cols());
  double slope = 0;
  if (has_order) {
    shadow = x.transpose() * p / square;
    slope = p.dot(y) / square;
    x -= p * shadow.transpose();
    y -= p * slope;
  }
  auto path = lasso_path(x, y, shares);
  PathModels models{.lambdas = std::move(path.lambdas),
                    .coefficients = std::move(path.coefficients)};
  models.alphas = slope - (models.coefficients.transpose() * shadow).array();
  models.constants = target.mean() - (models.coefficients.transpose() * mean).array() -
                     models.alphas.array() * proxy.mean();
  return models;
}

PathModels fit_path(const VectorXd& proxy, const MatrixXd& basis, const VectorXd& target,
                    const Rows& rows, std::span<const double> shares) {
  return fit_path(proxy(rows), basis(rows, Eigen::all), target(rows), shares);
}

/// Answers for each sample (row) and lambda (column) by a model that did not see the sample.
MatrixXd held_out_answers(const VectorXd& proxy, const MatrixXd& basis, const VectorXd& target,
                          Index folds, std::span<const double> shares) {
  MatrixXd answers(target.size(), static_cast<Index>(shares.size()));
  for (Index fold = 0; fold < folds; ++fold) {
    Rows rows;
    for (Index i = 0; i < target.size(); ++i)
      if (i % folds != fold) rows.push_back(i);
    const auto models = fit_path(proxy, basis, target, rows, shares);
    for (Index i = fold; i < target.size(); i += folds)
      answers.row(i) = models.answers(basis, proxy, i).transpose();
  }
  return answers;
}

struct Choice {
  std::size_t basis = 0;
  Index lambda = 0;
  double error = std::numeric_limits<double>::infinity();
  VectorXd answers = {};  ///< for samples that were held out
};

class Fit {
 public:
  Fit(const CorrectionSamples& samples, const CorrectionOptions& options)
      : proxy_(samples.proxy / size_of(samples.proxy)),
        target_(samples.target / size_of(samples.target)),
        bases_(samples.bases),
        shares_(falling_shares(options.lambdas)) {
    const auto count = static_cast<int>(target_.size());
    folds_ = std::clamp((count + options.held_out / 2) / std::max(1, options.held_out), 2,
                        std::min(kMostFolds, count));
  }

  Correction run() {
    const VectorXd measured = target_;
    Choice choice;
    for (std::size_t i = 0; i < bases_.size(); ++i) consider(i, choice);
    for (int round = 0; round < kRobustRounds && choice.lambda > 0; ++round) {
      if (!draw_outliers_in(measured, choice)) break;
      Choice again;
      consider(choice.basis, again);
      choice = std::move(again);
    }
    Correction correction = correction_of(choice);
    correction.proxy_srcc = srcc_or_worst(proxy_, measured);
    correction.held_out_srcc =
        choice.lambda > 0 ? srcc_or_worst(choice.answers, measured) : correction.proxy_srcc;
    correction.keeps_proxy =
        choice.lambda == 0 || correction.held_out_srcc <= correction.proxy_srcc;
    return correction;
  }

 private:
  void consider(std::size_t basis, Choice& best) const {
    const MatrixXd answers = held_out_answers(proxy_, bases_[basis], target_, folds_, shares_);
    for (Index i = 0; i < answers.cols(); ++i) {
      const double error = (answers.col(i) - target_).squaredNorm();
      if (error < best.error)
        best = {.basis = basis, .lambda = i, .error = error, .answers = answers.col(i)};
    }
  }

  /// Brings samples that lie far from the model nearer to it. False if there are none.
  bool draw_outliers_in(const VectorXd& measured, const Choice& choice) {
    const auto model = correction_of(choice);
    const VectorXd said = (model.constant + model.alpha * proxy_.array()).matrix() +
                          bases_[choice.basis] * model.coefficients;
    const VectorXd rest = measured - said;
    const double deviation = kDeviationOfMad * core::mad(span_of(rest)).value_or(0.0);
    if (deviation <= kNothing) return false;
    const double most = kOutlier * deviation;
    target_ = said + rest.cwiseMax(-most).cwiseMin(most);
    return true;
  }

  Correction correction_of(const Choice& choice) const {
    const auto models = fit_path(proxy_, bases_[choice.basis], target_, shares_);
    return {.basis = choice.basis,
            .constant = models.constants[choice.lambda],
            .alpha = models.alphas[choice.lambda],
            .coefficients = models.coefficients.col(choice.lambda),
            .lambda = 2 * models.lambdas[static_cast<std::size_t>(choice.lambda)] /
                      static_cast<double>(target_.size())};
  }

  VectorXd proxy_;   // mean square 1
  VectorXd target_;  // mean square 1, later with outliers drawn in
  std::span<const MatrixXd> bases_;
  std::vector<double> shares_;
  Index folds_ = 2;
};

Status check(const CorrectionSamples& samples, const CorrectionOptions& options) {
  if (samples.target.size() <= options.held_out) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} measurements are too few: {} of them are set aside for validation",
                            samples.target.size(), options.held_out));
  }
  if (samples.target.minCoeff() == samples.target.maxCoeff())
    return fail(ErrorCode::invalid_input, "all measured latencies are equal");
  return {};
}

}  // namespace

Result<Correction> fit_correction(const CorrectionSamples& samples,
                                  const CorrectionOptions& options) {
  if (auto good = check(samples, options); !good) return tl::unexpected(std::move(good.error()));
  Correction correction = Fit(samples, options).run();
  const double scale = size_of(samples.target);
  correction.constant *= scale;
  correction.alpha *= scale / size_of(samples.proxy);
  correction.coefficients *= scale;
  if (!correction.keeps_proxy) return correction;
  correction.constant = 0;
  correction.alpha = samples.target.mean() / samples.proxy.mean();
  correction.coefficients.setZero();
  return correction;
}

}  // namespace fleetfit::transfer
