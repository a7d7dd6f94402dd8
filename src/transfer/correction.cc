#include "transfer/correction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Rows = std::vector<Index>;

constexpr double kLeastShare = 1e-3;  // of the largest lambda
constexpr int kMostFolds = 10;
constexpr int kRobustRounds = 4;
constexpr double kOutlier = 1.5;            // standard deviations
constexpr double kDeviationOfMad = 1.4826;  // of a normal distribution
constexpr int kFurther = 5;  // penalties beyond the one that was best with the outliers
constexpr double kNothing = 1e-12;
constexpr int kResamples = 200;
// Share of resamples in which a changed proxy has to win. One that is strong already has more to
// lose than to win.
constexpr double kClearly = 0.9;
constexpr double kVeryClearly = 0.99;
constexpr double kStrong = 0.9;

std::span<const double> span_of(const VectorXd& v) {
  return {v.data(), static_cast<std::size_t>(v.size())};
}

/// -1 where no order is defined, which is never better than another.
double srcc_or_worst(const VectorXd& x, const VectorXd& y) {
  return core::spearman(span_of(x), span_of(y)).value_or(-1.0);
}

/// Whether the order of `better` would be nearer to the target's than that of `proxy` for other
/// samples, too, as far as resampling shows.
bool is_clearly_better(const VectorXd& better, const VectorXd& proxy, const VectorXd& target) {
  core::Random random(1);
  Rows rows(static_cast<std::size_t>(target.size()));
  int wins = 0;
  for (int i = 0; i < kResamples; ++i) {
    for (auto& row : rows) row = static_cast<Index>(random.below(rows.size()));
    const VectorXd drawn = target(rows);
    if (srcc_or_worst(better(rows), drawn) > srcc_or_worst(proxy(rows), drawn)) ++wins;
  }
  const bool is_strong = srcc_or_worst(proxy, target) >= kStrong;
  return wins >= (is_strong ? kVeryClearly : kClearly) * kResamples;
}

/// By which samples are divided, so that lambda means the same for every device.
double size_of(const VectorXd& v) {
  const double size = v.norm() / std::sqrt(static_cast<double>(v.size()));
  return size > 0 ? size : 1;
}

/// The samples without what constant and alpha can tell, which are free: what is left is a plain
/// lasso.
class Projected {
 public:
  Projected(const VectorXd& proxy, const MatrixXd& basis, const VectorXd& target)
      : proxy_mean_(proxy.mean()),
        target_mean_(target.mean()),
        basis_mean_(basis.colwise().mean().transpose()),
        shadow_(VectorXd::Zero(basis.cols())),
        x_(basis.rowwise() - basis_mean_.transpose()),
        y_(target.array() - target_mean_) {
    const VectorXd p = proxy.array() - proxy_mean_;
    const double square = p.squaredNorm();
    if (square <= kNothing * proxy.squaredNorm()) return;
    shadow_ = x_.transpose() * p / square;
    slope_ = p.dot(y_) / square;
    x_ -= p * shadow_.transpose();
    y_ -= p * slope_;
  }

  const MatrixXd& x() const { return x_; }
  const VectorXd& y() const { return y_; }

  VectorXd alphas(const MatrixXd& coefficients) const {
    return slope_ - (coefficients.transpose() * shadow_).array();
  }
  VectorXd constants(const MatrixXd& coefficients) const {
    return target_mean_ - (coefficients.transpose() * basis_mean_).array() -
           alphas(coefficients).array() * proxy_mean_;
  }

 private:
  double proxy_mean_;
  double target_mean_;
  double slope_ = 0;
  VectorXd basis_mean_;
  VectorXd shadow_;  // how much of the proxy is in each column
  MatrixXd x_;
  VectorXd y_;
};

/// Models for all lambdas, fitted to some of the samples.
struct PathModels {
  MatrixXd coefficients;  // a column for each lambda
  VectorXd constants;
  VectorXd alphas;

  VectorXd answers(const MatrixXd& basis, const VectorXd& proxy, Index row) const {
    return constants + proxy[row] * alphas + coefficients.transpose() * basis.row(row).transpose();
  }
};

/// `penalties` are lambdas for each sample.
PathModels fit_path(const VectorXd& proxy, const MatrixXd& basis, const VectorXd& target,
                    std::span<const double> penalties) {
  const Projected projected(proxy, basis, target);
  std::vector<double> lambdas(penalties.begin(), penalties.end());
  for (double& lambda : lambdas) lambda *= static_cast<double>(target.size());
  PathModels models{.coefficients = lasso_path(projected.x(), projected.y(), lambdas)};
  models.alphas = projected.alphas(models.coefficients);
  models.constants = projected.constants(models.coefficients);
  return models;
}

/// From the least penalty under which nothing changes down.
std::vector<double> falling_penalties(const VectorXd& proxy, const MatrixXd& basis,
                                      const VectorXd& target, int count) {
  const Projected projected(proxy, basis, target);
  const double largest =
      largest_lambda(projected.x(), projected.y()) / static_cast<double>(target.size());
  std::vector<double> penalties;
  for (int i = 0; i < count; ++i) {
    const double share = std::pow(kLeastShare, static_cast<double>(i) / std::max(1, count - 1));
    penalties.push_back(std::max(largest * share, std::numeric_limits<double>::min()));
  }
  return penalties;
}

/// Answers for each sample (row) and penalty (column) by a model that did not see the sample.
MatrixXd held_out_answers(const VectorXd& proxy, const MatrixXd& basis, const VectorXd& target,
                          Index folds, std::span<const double> penalties) {
  MatrixXd answers(target.size(), static_cast<Index>(penalties.size()));
  for (Index fold = 0; fold < folds; ++fold) {
    Rows rows;
    for (Index i = 0; i < target.size(); ++i)
      if (i % folds != fold) rows.push_back(i);
    const auto models = fit_path(proxy(rows), basis(rows, Eigen::all), target(rows), penalties);
    for (Index i = fold; i < target.size(); i += folds)
      answers.row(i) = models.answers(basis, proxy, i).transpose();
  }
  return answers;
}

struct Choice {
  std::size_t basis = 0;
  Index number = 0;  ///< of the penalty; 0: nothing changes
  double penalty = 0;
  double error = std::numeric_limits<double>::infinity();
  VectorXd answers = {};  ///< for samples that were held out
};

class Fit {
 public:
  Fit(const CorrectionSamples& samples, const CorrectionOptions& options)
      : proxy_(samples.proxy / size_of(samples.proxy)),
        target_(samples.target / size_of(samples.target)),
        bases_(samples.bases),
        lambdas_(options.lambdas) {
    const auto count = static_cast<int>(target_.size());
    folds_ = std::clamp((count + options.held_out / 2) / std::max(1, options.held_out), 2,
                        std::min(kMostFolds, count));
  }

  Correction run() {
    const VectorXd measured = target_;
    Choice choice;
    for (std::size_t i = 0; i < bases_.size(); ++i) consider(i, lambdas_, choice);
    for (int round = 0; round < kRobustRounds && choice.number > 0; ++round) {
      if (!draw_outliers_in(measured, choice)) break;
      Choice again;
      consider(choice.basis, static_cast<int>(choice.number) + kFurther, again);
      choice = std::move(again);
    }
    Correction correction = correction_of(choice);
    correction.proxy_srcc = srcc_or_worst(proxy_, measured);
    correction.held_out_srcc =
        choice.number > 0 ? srcc_or_worst(choice.answers, measured) : correction.proxy_srcc;
    correction.keeps_proxy =
        choice.number == 0 || !is_clearly_better(choice.answers, proxy_, measured);
    return correction;
  }

 private:
  /// Looks at the first `most` penalties; the last ones take most of the time.
  void consider(std::size_t basis, int most, Choice& best) const {
    auto penalties = falling_penalties(proxy_, bases_[basis], target_, lambdas_);
    penalties.resize(static_cast<std::size_t>(std::min(most, lambdas_)));
    const MatrixXd answers = held_out_answers(proxy_, bases_[basis], target_, folds_, penalties);
    for (Index i = 0; i < answers.cols(); ++i) {
      const double error = (answers.col(i) - target_).squaredNorm();
      if (error >= best.error) continue;
      best = {.basis = basis,
              .number = i,
              .penalty = penalties[static_cast<std::size_t>(i)],
              .error = error,
              .answers = answers.col(i)};
    }
  }

  /// Brings samples that lie far from the model nearer to it. False if there are none.
  bool draw_outliers_in(const VectorXd& measured, const Choice& choice) {
    const VectorXd& said = choice.answers;
    const VectorXd rest = measured - said;
    const double deviation = kDeviationOfMad * core::mad(span_of(rest)).value_or(0.0);
    if (deviation <= kNothing) return false;
    const double most = kOutlier * deviation;
    target_ = said + rest.cwiseMax(-most).cwiseMin(most);
    return true;
  }

  Correction correction_of(const Choice& choice) const {
    const auto models =
        fit_path(proxy_, bases_[choice.basis], target_, std::span(&choice.penalty, 1));
    return {.basis = choice.basis,
            .constant = models.constants[0],
            .alpha = models.alphas[0],
            .coefficients = models.coefficients.col(0),
            .lambda = 2 * choice.penalty};
  }

  VectorXd proxy_;   // mean square 1
  VectorXd target_;  // mean square 1, later with outliers drawn in
  std::span<const MatrixXd> bases_;
  int lambdas_;
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
  FLEETFIT_TRY(check(samples, options));
  Correction correction = Fit(samples, options).run();
  const double scale = size_of(samples.target);
  correction.constant *= scale;
  correction.alpha *= scale / size_of(samples.proxy);
  correction.coefficients *= scale;
  if (!correction.keeps_proxy) return correction;
  correction.constant = 0;
  correction.alpha = samples.proxy.mean() > 0 ? samples.target.mean() / samples.proxy.mean() : 1;
  correction.coefficients.setZero();
  return correction;
}

}  // namespace fleetfit::transfer
