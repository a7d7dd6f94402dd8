#include "fleetfit/transfer/few_shot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"
#include "transfer/few_shot_lessons.h"

namespace fleetfit::transfer {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct FewShotModel::Parts {
  std::shared_ptr<const FewShotLessons> lessons;  // shared by all models made from them
  LatencyScale scale;
  double rounding_ms = 0;  // the step to which latencies were rounded
  double centre = 0;
  Points samples;
  Posterior posterior;
  double widening = 1;
  FewShotVerdict verdict = {};

  MatrixXd similarity(const Points& points) const {
    return weighted_sum(part_kernels(points, samples, lessons->scales), posterior.weights);
  }
  double level(double mean) const { return (mean + centre) * lessons->unit; }

  /// Variance that rounding adds at a latency.
  double rounding(double ms) const {
    const double slope = 1 / ((ms + scale.typical_ms) * lessons->unit);
    return rounding_ms * rounding_ms / 12 * slope * slope;
  }
  PredictedLatency range(double mean, double variance) const;
  FewShotVerdict judge() const;
};

namespace {

constexpr std::size_t kFewest = 3;
/// The work grows with the cube of their number.
constexpr std::size_t kMostSamples = 400;
constexpr std::size_t kChunk = 1024;
/// Variance of Student's t with four degrees of freedom and a width of 1.
constexpr double kTailFactor = 2;
constexpr Index kJudged = 300;  // designs by which a model is judged

/// The largest power of ten, at most ten milliseconds and at least a microsecond, of which all are
/// multiples; 0 if there is none.
double rounding_step(std::span<const double> ms) {
  for (const double step : {10.0, 1.0, 0.1, 0.01, 0.001}) {
    const auto is_multiple = [step](double value) {
      return std::abs(value / step - std::round(value / step)) < 1e-6;
    };
    if (std::ranges::all_of(ms, is_multiple)) return step;
  }
  return 0;
}

/// Of normal variables with this linear correlation.
double rank_correlation(double linear) {
  return 6 / std::numbers::pi * std::asin(std::clamp(linear, 0.0, 1.0) / 2);
}

double share_root(double part, double whole) { return whole > 0 ? std::sqrt(part / whole) : 0; }

Status check_samples(space::DesignBatch designs, std::span<const double> latencies_ms) {
  assert(designs.size() == latencies_ms.size());
  if (designs.size() < kFewest) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} measured designs are too few to fit a device, {} are needed",
                            designs.size(), kFewest));
  }
  const auto is_latency = [](double ms) { return std::isfinite(ms) && ms > 0; };
  if (!std::ranges::all_of(latencies_ms, is_latency))
    return fail(ErrorCode::invalid_input, "a measured latency is not positive and finite");
  if (std::ranges::min(latencies_ms) == std::ranges::max(latencies_ms))
    return fail(ErrorCode::invalid_input, "all measured latencies are equal");
  return {};
}

}  // namespace

PredictedLatency FewShotModel::Parts::range(double mean, double variance) const {
  const double ms = scale.to_ms(level(mean));
  const double reach = widening * posterior.reach(variance + rounding(ms));
  return {.ms = ms,
          .low_ms = scale.to_ms(level(mean - reach)),
          .high_ms = scale.to_ms(level(mean + reach))};
}

/// Compares how much designs differ with how much is not known about them. What is not known about
/// all of them together does not change their order.
FewShotVerdict FewShotModel::Parts::judge() const {
  const auto& typical = lessons->typical;
  const Index count = std::min(kJudged, typical.size());
  const Points judged{.references = typical.references.topRows(count),
                      .encoded = {.one_hot = typical.encoded.one_hot.topRows(count),
                                  .live = typical.encoded.live.topRows(count),
                                  .counts = typical.encoded.counts.topRows(count),
                                  .amounts = {}}};
  const MatrixXd to_samples = similarity(judged);
  const MatrixXd whitened = posterior.factor.matrixL().solve(to_samples.transpose());
  const MatrixXd covariance =
      weighted_sum(part_kernels(judged, judged, lessons->scales), posterior.weights) -
      whitened.transpose() * whitened;
  const Eigen::ArrayXd mean = posterior.mean(to_samples);
  double rounded = 0;
  for (const double one : mean)
    rounded += rounding(scale.to_ms(level(one))) / static_cast<double>(count);
  const double known = (mean - mean.mean()).square().mean();
  const double open = std::max(covariance.diagonal().mean() - covariance.mean(), 0.0);
  const double noise = kTailFactor * posterior.noise + rounded;
  FewShotVerdict result{.expected_srcc = rank_correlation(share_root(known, known + open + noise)),
                        .ceiling = rank_correlation(share_root(known + open, known + open + noise)),
                        .noise_ms = std::sqrt(noise) * lessons->unit * 2 * scale.typical_ms};
  result.enough = result.expected_srcc >= result.ceiling - lessons->options.tolerance;
  return result;
}

FewShotModel::FewShotModel(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
FewShotModel::~FewShotModel() = default;

Status FewShotModel::evaluate(space::DesignBatch designs, std::span<double> out) const {
  assert(out.size() == designs.size());
  for (std::size_t first = 0; first < designs.size(); first += kChunk) {
    const auto part = designs.part(first, std::min(kChunk, designs.size() - first));
    const VectorXd mean = parts_->posterior.mean(parts_->similarity(parts_->lessons->points(part)));
    for (std::size_t i = 0; i < part.size(); ++i)
      out[first + i] = parts_->scale.to_ms(parts_->level(mean[static_cast<Index>(i)]));
  }
  return {};
}

void FewShotModel::predict(space::DesignBatch designs, std::span<PredictedLatency> out) const {
  assert(out.size() == designs.size());
  const auto& posterior = parts_->posterior;
  for (std::size_t first = 0; first < designs.size(); first += kChunk) {
    const auto part = designs.part(first, std::min(kChunk, designs.size() - first));
    const Points points = parts_->lessons->points(part);
    const MatrixXd similarity = parts_->similarity(points);
    const VectorXd mean = posterior.mean(similarity);
    const VectorXd variance = posterior.variance(
        similarity, self_similarity(points, parts_->lessons->scales, posterior.weights));
    for (Index i = 0; i < mean.size(); ++i)
      out[first + static_cast<std::size_t>(i)] = parts_->range(mean[i], variance[i]);
  }
}

const FewShotVerdict& FewShotModel::verdict() const { return parts_->verdict; }

std::vector<std::size_t> FewShotModel::next(space::DesignBatch candidates,
                                            std::size_t count) const {
  return parts_->lessons->choose(candidates, count, &parts_->samples, &parts_->posterior);
}

KnownDevices::KnownDevices(std::shared_ptr<const FewShotLessons> lessons)
    : lessons_(std::move(lessons)) {}
KnownDevices::KnownDevices(KnownDevices&& other) noexcept = default;
KnownDevices& KnownDevices::operator=(KnownDevices&& other) noexcept = default;
KnownDevices::~KnownDevices() = default;

std::vector<std::size_t> KnownDevices::choose(space::DesignBatch candidates,
                                              std::size_t count) const {
  return lessons_->choose(candidates, count, nullptr, nullptr);
}

Result<std::unique_ptr<const FewShotModel>> KnownDevices::fit_some(
    space::DesignBatch designs, std::span<const double> latencies_ms) const {
  space::Population some(designs.genes());
  std::vector<double> latencies;
  core::Random random = core::Random(lessons_->options.seed).split("samples");
  for (const auto place : random.sample(designs.size(), kMostSamples)) {
    some.add(designs[place]);
    latencies.push_back(latencies_ms[place]);
  }
  return fit(some, latencies);
}

Result<std::unique_ptr<const FewShotModel>> KnownDevices::fit(
    space::DesignBatch designs, std::span<const double> latencies_ms) const {
  FLEETFIT_TRY(check_samples(designs, latencies_ms));
  if (designs.size() > kMostSamples) return fit_some(designs, latencies_ms);
  auto parts = std::make_unique<FewShotModel::Parts>();
  parts->lessons = lessons_;
  parts->scale.typical_ms = *core::median(latencies_ms);
  parts->rounding_ms = rounding_step(latencies_ms);
  std::vector<double> levels;
  for (const double ms : latencies_ms) levels.push_back(parts->scale.to_level(ms) / lessons_->unit);
  parts->centre = *core::median(levels);
  parts->samples = lessons_->points(designs);

  Observations observations{
      .kernels = part_kernels(parts->samples, parts->samples, lessons_->scales),
      .levels = Eigen::Map<const VectorXd>(levels.data(), static_cast<Index>(levels.size())),
      .rounding = VectorXd(static_cast<Index>(levels.size()))};
  observations.levels.array() -= parts->centre;
  std::ranges::transform(latencies_ms, observations.rounding.begin(),
                         [&](double ms) { return parts->rounding(ms); });
  parts->posterior = fit_posterior(observations, lessons_->prior);
  parts->widening = lessons_->widening(designs.size());
  parts->verdict = parts->judge();
  return std::unique_ptr<const FewShotModel>(new FewShotModel(std::move(parts)));
}

}  // namespace fleetfit::transfer
