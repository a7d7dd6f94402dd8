#include "transfer/correction.h"

#include <cmath>
#include <limits>

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRidge = 1e-8;      // as a share of a column's mean square
constexpr double kTie = 1e-10;       // correlations that are equal to lambda, as a share of it
constexpr double kDependent = 1e-6;  // a column that falls as lambda does will never stand out
constexpr Index kStepsForEachColumn = 8;

/// The columns that are taken up, with the factor of their products, which grows by a row for each.
class ActiveSet {
 public:
  ActiveSet(const MatrixXd& x, double ridge)
      : x_(x), ridge_(ridge), is_member_(static_cast<std::size_t>(x.cols()), false) {
    const Index most = std::min(x.rows(), x.cols()) + 1;
    factor_ = MatrixXd::Zero(most, most);
  }

  Index size() const { return static_cast<Index>(columns_.size()); }
  bool is_full() const { return size() + 1 >= factor_.rows(); }
  Index column(Index i) const { return columns_[static_cast<std::size_t>(i)]; }
  double sign(Index i) const { return signs_[static_cast<std::size_t>(i)]; }
  bool has(Index column) const { return is_member_[static_cast<std::size_t>(column)]; }

  void add(Index column, double sign) {
    append_row(column);
    columns_.push_back(column);
    signs_.push_back(sign);
    is_member_[static_cast<std::size_t>(column)] = true;
  }

  void remove(Index i) {
    is_member_[static_cast<std::size_t>(column(i))] = false;
    auto kept = std::move(columns_);
    columns_.clear();
    kept.erase(kept.begin() + i);
    signs_.erase(signs_.begin() + i);
    for (const Index column : kept) {
      append_row(column);
      columns_.push_back(column);
    }
  }

  /// How fast coefficients grow while lambda falls.
  VectorXd direction() const {
    VectorXd d(size());
    for (Index i = 0; i < size(); ++i) d[i] = sign(i);
    const auto factor = factor_.topLeftCorner(size(), size()).triangularView<Eigen::Lower>();
    factor.solveInPlace(d);
    factor.transpose().solveInPlace(d);
    return d;
  }

  VectorXd combine(const VectorXd& d) const {
    VectorXd sum = VectorXd::Zero(x_.rows());
    for (Index i = 0; i < size(); ++i) sum += d[i] * x_.col(column(i));
    return sum;
  }

 private:
  void append_row(Index column) {
    const Index k = size();
    VectorXd products(k);
    for (Index i = 0; i < k; ++i) products[i] = x_.col(this->column(i)).dot(x_.col(column));
    factor_.topLeftCorner(k, k).triangularView<Eigen::Lower>().solveInPlace(products);
    const double rest = x_.col(column).squaredNorm() + ridge_ - products.squaredNorm();
    factor_.row(k).head(k) = products.transpose();
    factor_(k, k) = std::sqrt(std::max(rest, ridge_));
  }

  const MatrixXd& x_;
  double ridge_;
  MatrixXd factor_;
  std::vector<Index> columns_;
  std::vector<double> signs_;
  std::vector<bool> is_member_;
};

/// What happens next on the way down: after lambda has fallen by `fall`, a column enters or leaves.
struct Corner {
  double fall = kInfinity;
  Index entering = -1;  ///< a column, or none
  Index leaving = -1;   ///< a place in the active set, or none
};

/// When |correlation - fall x rate| reaches lambda - fall, for one sign.
double fall_until_entry(double lambda, double correlation, double rate) {
  const double gap = lambda - correlation;
  const double closing = 1 - rate;
  if (closing <= kDependent) return kInfinity;
  if (gap <= kTie * lambda) return 0;
  return gap / closing;
}

class Walk {
 public:
  Walk(const MatrixXd& x, const VectorXd& y)
      : x_(x),
        ridge_(kRidge * x.squaredNorm() / static_cast<double>(std::max<Index>(1, x.cols()))),
        active_(x, ridge_),
        correlation_(x.transpose() * y),
        coefficient_(VectorXd::Zero(x.cols())) {
    lambda_ = x.cols() > 0 ? correlation_.cwiseAbs().maxCoeff(&first_) : 0;
  }

  MatrixXd follow(std::span<const double> lambdas) {
    MatrixXd path = MatrixXd::Zero(x_.cols(), static_cast<Index>(lambdas.size()));
    std::size_t next = 0;
    while (next < lambdas.size() && lambdas[next] >= lambda_) ++next;
    if (lambda_ <= 0) return path;
    active_.add(first_, correlation_[first_] < 0 ? -1 : 1);
    const Index most_steps = kStepsForEachColumn * std::min(x_.rows(), x_.cols());
    for (Index step = 0; step < most_steps && next < lambdas.size(); ++step) {
      const VectorXd direction = active_.direction();
      const VectorXd rate = x_.transpose() * active_.combine(direction);
      const Corner corner = next_corner(direction, rate);
      const double reached = lambda_ - std::min(corner.fall, lambda_);
      for (; next < lambdas.size() && lambdas[next] >= reached; ++next)
        write(direction, lambda_ - lambdas[next], path.col(static_cast<Index>(next)));
      if (next < lambdas.size()) turn(corner, direction, rate);
    }
    for (; next < lambdas.size(); ++next) path.col(static_cast<Index>(next)) = coefficient_;
    return path;
  }

 private:
  Corner next_corner(const VectorXd& direction, const VectorXd& rate) const {
    Corner corner;
    for (Index i = 0; i < active_.size(); ++i) {
      const double value = coefficient_[active_.column(i)];
      double fall = -value / direction[i];
      if (value == 0) fall = direction[i] * active_.sign(i) < 0 ? 0 : kInfinity;
      if (fall >= 0 && fall < corner.fall) corner = {.fall = fall, .leaving = i};
    }
    if (active_.is_full()) return corner;
    for (Index j = 0; j < x_.cols(); ++j) {
      if (active_.has(j)) continue;
      const double fall = std::min(fall_until_entry(lambda_, correlation_[j], rate[j]),
                                   fall_until_entry(lambda_, -correlation_[j], -rate[j]));
      if (fall < corner.fall) corner = {.fall = fall, .entering = j};
    }
    return corner;
  }

  void write(const VectorXd& direction, double fall, Eigen::Ref<VectorXd> out) const {
    out = coefficient_;
    for (Index i = 0; i < active_.size(); ++i) out[active_.column(i)] += fall * direction[i];
  }

  void turn(const Corner& corner, const VectorXd& direction, const VectorXd& rate) {
    for (Index i = 0; i < active_.size(); ++i)
      coefficient_[active_.column(i)] += corner.fall * direction[i];
    correlation_ -= corner.fall * rate;
    lambda_ -= corner.fall;
    if (corner.leaving >= 0) {
      coefficient_[active_.column(corner.leaving)] = 0;
      active_.remove(corner.leaving);
    } else if (corner.entering >= 0) {
      active_.add(corner.entering, correlation_[corner.entering] < 0 ? -1 : 1);
    }
  }

  const MatrixXd& x_;
  double ridge_;
  ActiveSet active_;
  VectorXd correlation_;  // of each column with what is left of y
  VectorXd coefficient_;
  double lambda_ = 0;
  Index first_ = 0;
};

}  // namespace

MatrixXd lasso_path(const MatrixXd& x, const VectorXd& y, std::span<const double> lambdas) {
  return Walk(x, y).follow(lambdas);
}

double largest_lambda(const MatrixXd& x, const VectorXd& y) {
  return x.cols() == 0 ? 0 : (x.transpose() * y).cwiseAbs().maxCoeff();
}

}  // namespace fleetfit::transfer
