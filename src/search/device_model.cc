#include "search/device_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "fleetfit/core/statistics.h"

namespace fleetfit::search {
namespace {

constexpr double kLevel = 3;        // devices differ by factors of e^3 and more
constexpr double kSlope = 0.3;      // how much faster or slower than the proxy's the cost may grow
constexpr double kInteraction = 5;  // how much pairs of choices count beside single ones
constexpr double kKindPrices = 5;   // spread of the price of a kind, in units of the shared part
constexpr double kUsualShared = 0.22;
constexpr double kUsualNoise = 0.03;

double square(double x) { return x * x; }

}  // namespace

DeviceModel::DeviceModel(const space::Space& space)
    : space_(&space), designs_(space.genes().size()) {
  // Genes with the same choices decide on the same kinds of operators.
  const auto genes = space.genes();
  for (std::size_t gene = 0; gene < genes.size(); ++gene) {
    expected_equal_ += 1.0 / static_cast<double>(genes[gene].choices.size());
    const auto alike = std::ranges::find(genes, genes[gene].choices, &space::Gene::choices);
    const auto first = static_cast<std::size_t>(alike - genes.begin());
    first_kind_.push_back(first < gene ? first_kind_[first] : kinds_);
    if (first == gene) kinds_ += genes[gene].choices.size();
  }
}

/// For each choice, the share of the genes that have taken it.
std::vector<double> DeviceModel::shares_of(space::Design design) const {
  std::vector<double> shares(kinds_, 0);
  const double each = 1.0 / static_cast<double>(design.size());
  for (std::size_t gene = 0; gene < design.size(); ++gene)
    if (space_->is_active(design, gene)) shares[first_kind_[gene] + design[gene]] += each;
  return shares;
}

DeviceModel::Point DeviceModel::point(std::size_t i) const {
  return {designs_[i], logs_[i], std::span(shares_).subspan(i * kinds_, kinds_)};
}

void DeviceModel::add(space::Design design, double proxy, double measured) {
  designs_.add(design);
  const auto shares = shares_of(design);
  shares_.insert(shares_.end(), shares.begin(), shares.end());
  logs_.push_back(std::log(proxy));
  ratios_.push_back(std::log(measured) - std::log(proxy));
}

double DeviceModel::kernel(const Point& a, const Point& b) const {
  std::size_t equal = 0;
  for (std::size_t gene = 0; gene < a.design.size(); ++gene)
    equal += a.design[gene] == b.design[gene] ? 1U : 0U;
  const double range = static_cast<double>(a.design.size()) - expected_equal_;
  const double likeness = range > 0 ? (static_cast<double>(equal) - expected_equal_) / range : 1;
  double prices = 0;
  for (std::size_t kind = 0; kind < kinds_; ++kind) prices += a.shares[kind] * b.shares[kind];
  return square(kLevel) +
         square(kSlope) * (a.log_proxy - middle_log_) * (b.log_proxy - middle_log_) +
         square(kKindPrices * settings_.shared) * prices +
         square(settings_.shared * (1 + kInteraction * likeness) / (1 + kInteraction));
}

double DeviceModel::try_settings(const Settings& settings) {
  settings_ = settings;
  std::vector<double> covariance;
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) covariance.push_back(kernel(point(i), point(j)));
    covariance.back() += square(settings.noise);
  }
  factor_ = core::Cholesky(std::move(covariance));
  whitened_.clear();
  for (const double ratio : ratios_) whitened_.push_back(ratio - middle_ratio_);
  factor_.whiten(whitened_);
  double likelihood = -factor_.log_determinant() / 2;
  for (const double part : whitened_) likelihood -= square(part) / 2;
  // Few measurements say little of the settings: usual ones are preferred.
  return likelihood - square(std::log(settings.shared / kUsualShared)) / 2 -
         square(std::log(settings.noise / kUsualNoise)) / 2;
}

void DeviceModel::fit() {
  middle_log_ = core::mean(logs_).value_or(0);
  middle_ratio_ = core::median(ratios_).value_or(0);
  Settings best;
  double most = -std::numeric_limits<double>::infinity();
  for (const double shared : {0.05, 0.1, 0.22, 0.45, 0.9}) {
    for (const double noise : {0.01, 0.03, 0.1}) {
      const double likelihood = try_settings({shared, noise});
      if (likelihood <= most) continue;
      most = likelihood;
      best = {shared, noise};
    }
  }
  try_settings(best);
}

DeviceModel::Prediction DeviceModel::predict(space::Design design, double proxy) const {
  const double log_proxy = std::log(proxy);
  std::vector<double> with(size());
  const auto shares = shares_of(design);
  const Point here{design, log_proxy, shares};
  for (std::size_t i = 0; i < size(); ++i) with[i] = kernel(here, point(i));
  factor_.whiten(with);
  double mean = middle_ratio_ + log_proxy;
  double variance = kernel(here, here) + square(settings_.noise);
  for (std::size_t i = 0; i < size(); ++i) {
    mean += with[i] * whitened_[i];
    variance -= square(with[i]);
  }
  return {mean, std::sqrt(std::max(variance, 1e-12))};
}

double DeviceModel::chance_below(const Prediction& predicted, double limit) {
  const double z = (std::log(limit) - predicted.mean) / predicted.deviation;
  return std::erfc(-z / std::numbers::sqrt2) / 2;
}

}  // namespace fleetfit::search
