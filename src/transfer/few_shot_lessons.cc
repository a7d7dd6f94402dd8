#include "transfer/few_shot_lessons.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::transfer {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t kTypicalDesigns = 1500;
constexpr Index kTargets = 500;         // of the typical designs, for the choice of samples
constexpr std::size_t kFewest = 20;     // samples of a reference
constexpr std::size_t kEvidence = 60;   // samples of a reference that weights are learned from
constexpr std::size_t kRehearsed = 20;  // most samples of a reference in a rehearsal
constexpr std::size_t kTests = 150;     // other samples of it in a rehearsal
constexpr std::size_t kMostRehearsals = 12;
constexpr double kLeastNoise = 1e-5;
constexpr double kNoiseDeviationLow = 1.5;
constexpr double kNoiseDeviationHigh = 2.5;
constexpr double kWideningLow = 0.7;
constexpr double kWideningHigh = 3;

std::vector<std::size_t> shuffled_rows(std::size_t count, core::Random random) {
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  random.shuffle(rows);
  return rows;
}

/// Rows of the table that are looked at, each once.
class ChosenRows {
 public:
  explicit ChosenRows(const space::DesignTable& table)
      : table_(table), place_(table.designs.size(), -1), designs_(table.designs.genes()) {}

  Index add(std::size_t row) {
    if (place_[row] < 0) {
      place_[row] = static_cast<Index>(designs_.size());
      designs_.add(table_.designs[row]);
    }
    return place_[row];
  }
  space::DesignBatch designs() const { return designs_; }

 private:
  const space::DesignTable& table_;
  std::vector<Index> place_;
  space::Population designs_;
};

Status check_references(const space::DesignTable& table, std::span<const std::size_t> references) {
  if (references.empty()) return fail(ErrorCode::invalid_input, "no reference devices are given");
  for (std::size_t i = 0; i < references.size(); ++i) {
    if (std::ranges::count(references, references[i]) > 1) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("reference {} is given twice", table.columns[references[i]]));
    }
  }
  return {};
}

/// The first designs in the given order that were measured on the device.
Result<ReferenceSamples> sample_reference(const space::DesignTable& table, std::size_t column,
                                          std::span<const std::size_t> order, std::size_t most,
                                          ChosenRows& rows) {
  ReferenceSamples samples;
  std::vector<double> ms;
  for (const auto row : order) {
    if (ms.size() == most) break;
    if (std::isnan(table.values[column][row])) continue;
    samples.rows.push_back(rows.add(row));
    ms.push_back(table.values[column][row]);
  }
  const auto place = fmt::format("{}: reference {}", table.name, table.columns[column]);
  if (ms.size() < kFewest) {
    return fail(ErrorCode::invalid_input, fmt::format("{} has {} measured designs, {} are needed",
                                                      place, ms.size(), kFewest));
  }
  if (std::ranges::min(ms) == std::ranges::max(ms)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} has the same latency for all designs", place));
  }
  const LatencyScale scale{.typical_ms = *core::median(ms)};
  samples.levels.resize(static_cast<Index>(ms.size()));
  std::ranges::transform(ms, samples.levels.begin(), [&](double x) { return scale.to_level(x); });
  return samples;
}

Points pick(const Points& points, std::span<const Index> rows) {
  const std::vector<Index> list(rows.begin(), rows.end());
  return {.references = points.references(list, Eigen::all),
          .encoded = {.one_hot = points.encoded.one_hot(list, Eigen::all),
                      .live = points.encoded.live(list, Eigen::all),
                      .counts = points.encoded.counts(list, Eigen::all),
                      .amounts = {}}};
}

Points first_points(const Points& points, Index count) {
  std::vector<Index> rows(static_cast<std::size_t>(std::min(count, points.size())));
  std::iota(rows.begin(), rows.end(), Index{0});
  return pick(points, rows);
}

MatrixXd without_column(const MatrixXd& matrix, Index column) {
  MatrixXd left(matrix.rows(), matrix.cols() - 1);
  left.leftCols(column) = matrix.leftCols(column);
  left.rightCols(left.cols() - column) = matrix.rightCols(left.cols() - column);
  return left;
}

/// A reference, its samples and its model.
struct Reference {
  Index number = 0;
  const ReferenceSamples& samples;
  const ReferenceModel& model;
};

/// Takes references out one by one; all points are given with all references.
class LeaveOneOut {
 public:
  LeaveOneOut(const Points& points, const Points& typical, double unit)
      : points_(points), typical_(typical), unit_(unit) {}

  ReferenceEvidence evidence(const Reference& reference) const {
    const auto rows = std::span(reference.samples.rows);
    const auto used = rows.first(std::min(kEvidence, rows.size()));
    const Points points = without(pick(points_, used), reference.number);
    VectorXd levels = reference.model.levels.head(static_cast<Index>(used.size())) / unit_;
    levels.array() -= levels.mean();
    return {.observations = {.kernels = part_kernels(points, points, scales(reference.number)),
                             .levels = levels,
                             .rounding = VectorXd::Zero(levels.size())},
            .noise = reference.model.noise / (unit_ * unit_)};
  }

  Rehearsal rehearsal(const Reference& reference) const {
    const auto rows = std::span(reference.samples.rows);
    const std::size_t samples = std::min(kRehearsed, rows.size() / 2);
    const std::size_t tests = std::min(kTests, rows.size() - samples);
    const VectorXd levels = reference.samples.levels / unit_;
    return {.samples = without(pick(points_, rows.first(samples)), reference.number),
            .tests = without(pick(points_, rows.subspan(samples, tests)), reference.number),
            .scales = scales(reference.number),
            .sample_levels = levels.head(static_cast<Index>(samples)),
            .test_levels = levels.segment(static_cast<Index>(samples), static_cast<Index>(tests))};
  }

 private:
  static Points without(Points points, Index reference) {
    points.references = without_column(points.references, reference);
    return points;
  }
  PartScales scales(Index reference) const {
    return part_scales(without_column(typical_.references, reference));
  }

  const Points& points_;
  const Points& typical_;
  double unit_;
};

double middle(const VectorXd& values) {
  return core::median(std::vector<double>(values.begin(), values.end())).value_or(0);
}

/// Errors of a rehearsal, each as a multiple of the reach that was predicted for it.
void add_relative_errors(const Rehearsal& rehearsal, Index samples, const DevicePrior& prior,
                         std::vector<double>& errors) {
  const Points used = first_points(rehearsal.samples, samples);
  const VectorXd levels = rehearsal.sample_levels.head(used.size());
  const double centre = middle(levels);
  const Posterior posterior = fit_posterior({.kernels = part_kernels(used, used, rehearsal.scales),
                                             .levels = levels.array() - centre,
                                             .rounding = VectorXd::Zero(levels.size())},
                                            prior);
  const MatrixXd similarity =
      weighted_sum(part_kernels(rehearsal.tests, used, rehearsal.scales), posterior.weights);
  const VectorXd self = self_similarity(rehearsal.tests, rehearsal.scales, posterior.weights);
  const VectorXd variance = posterior.variance(similarity, self);
  const Eigen::ArrayXd error =
      (rehearsal.test_levels.array() - centre - posterior.mean(similarity).array()).abs();
  for (Index i = 0; i < error.size(); ++i)
    errors.push_back(error[i] / posterior.reach(variance[i]));
}

/// What noise a device may have, by that of the references.
DevicePrior noise_prior(std::span<const ReferenceModel> models, double unit) {
  std::vector<double> logarithms;
  for (const auto& model : models)
    logarithms.push_back(std::log(kLeastNoise + model.noise / (unit * unit)));
  return {.weights = {},
          .noise = std::exp(core::median(logarithms).value_or(0)),
          .noise_deviation = std::clamp(core::stddev(logarithms).value_or(0), kNoiseDeviationLow,
                                        kNoiseDeviationHigh)};
}

void learn_from_each(FewShotLessons& lessons, const Points& points,
                     std::span<const ReferenceSamples> samples,
                     std::span<const ReferenceModel> models) {
  const LeaveOneOut leave_one_out(points, lessons.typical, lessons.unit);
  std::vector<ReferenceEvidence> evidence;
  for (std::size_t i = 0; i < models.size() && models.size() > 1; ++i) {
    const Reference reference{
        .number = static_cast<Index>(i), .samples = samples[i], .model = models[i]};
    evidence.push_back(leave_one_out.evidence(reference));
    if (i < kMostRehearsals) lessons.rehearsals.push_back(leave_one_out.rehearsal(reference));
  }
  lessons.prior = noise_prior(models, lessons.unit);
  lessons.prior.weights = learn_weights(evidence);
}

ReferenceFunctions stack(std::span<const ReferenceModel> models) {
  ReferenceFunctions functions{
      .weights = MatrixXd(models.front().weights.size(), static_cast<Index>(models.size())),
      .intercepts = Eigen::RowVectorXd(static_cast<Index>(models.size()))};
  for (std::size_t i = 0; i < models.size(); ++i) {
    functions.weights.col(static_cast<Index>(i)) = models[i].weights;
    functions.intercepts[static_cast<Index>(i)] = models[i].intercept;
  }
  return functions;
}

}  // namespace

Points FewShotLessons::start(const EncodedDesigns& encoded, Index typical_count) {
  const MatrixXd levels = functions.levels(encoder.regression_columns(encoded));
  reference_columns = standardize_columns(levels.topRows(typical_count));
  Points points{.references = reference_columns.apply(levels), .encoded = encoded};
  typical = first_points(points, typical_count);
  scales = part_scales(typical.references);
  const Eigen::RowVectorXd deviations =
      reference_columns.factor.unaryExpr([](double x) { return x > 0 ? 1 / x : 0; });
  if (deviations.maxCoeff() > 0) unit = deviations.mean();
  return points;
}

Points FewShotLessons::points(space::DesignBatch designs) const {
  Points points{.references = {}, .encoded = encoder.encode(designs)};
  points.references =
      reference_columns.apply(functions.levels(encoder.regression_columns(points.encoded)));
  return points;
}

double FewShotLessons::widening(std::size_t samples) const {
  std::vector<double> errors;
  for (const auto& rehearsal : rehearsals)
    add_relative_errors(rehearsal, static_cast<Index>(samples), prior, errors);
  if (errors.empty()) return 1;
  return std::clamp(core::quantile(errors, 0.9).value_or(1), kWideningLow, kWideningHigh);
}

std::vector<std::size_t> FewShotLessons::choose(space::DesignBatch candidates, std::size_t count,
                                                const Points* measured,
                                                const Posterior* posterior) const {
  auto order = shuffled_rows(candidates.size(), core::Random(options.seed).split("candidates"));
  order.resize(std::min(order.size(), std::max(options.candidates, count)));
  space::Population some(candidates.genes());
  for (const auto place : order) some.add(candidates[place]);
  const Points points_of_some = points(some);
  const Points targets = first_points(typical, kTargets);
  const LogWeights& weights = posterior != nullptr ? posterior->weights : prior.weights;
  const auto similarity = [&](const Points& a, const Points& b) {
    return weighted_sum(part_kernels(a, b, scales), weights);
  };
  MatrixXd known;  // of candidates, by what was measured
  ChoiceProblem problem{.targets_by_candidates = similarity(targets, points_of_some),
                        .candidate_variance = self_similarity(points_of_some, scales, weights),
                        .candidate_covariance = {},
                        .noise = posterior != nullptr ? posterior->noise : prior.noise};
  if (posterior != nullptr) {
    known = posterior->factor.matrixL().solve(similarity(*measured, points_of_some));
    const MatrixXd known_targets =
        posterior->factor.matrixL().solve(similarity(*measured, targets));
    problem.targets_by_candidates -= known_targets.transpose() * known;
    problem.candidate_variance -= known.colwise().squaredNorm().transpose();
  }
  problem.candidate_covariance = [&](Index candidate) -> VectorXd {
    VectorXd covariance =
        similarity(points_of_some, pick(points_of_some, std::span(&candidate, 1)));
    if (posterior != nullptr) covariance -= known.transpose() * known.col(candidate);
    return covariance;
  };
  auto chosen = choose_greedily(std::move(problem), count);
  for (auto& place : chosen) place = order[place];
  return chosen;
}

Result<KnownDevices> KnownDevices::learn(const space::DesignTable& table,
                                         std::span<const std::size_t> references,
                                         const FewShotOptions& options) {
  FLEETFIT_TRY(check_references(table, references));
  const core::Random random(options.seed);
  ChosenRows rows(table);
  auto typical_rows = shuffled_rows(table.designs.size(), random.split("typical"));
  typical_rows.resize(std::min(typical_rows.size(), kTypicalDesigns));
  for (const auto row : typical_rows) rows.add(row);
  const auto order = shuffled_rows(table.designs.size(), random.split("references"));
  std::vector<ReferenceSamples> samples;
  for (const auto column : references) {
    FLEETFIT_ASSIGN(auto sampled,
                    sample_reference(table, column, order, options.reference_samples, rows));
    samples.push_back(std::move(sampled));
  }

  const FewShotEncoder encoder(*table.space, rows.designs().part(0, typical_rows.size()));
  const EncodedDesigns encoded = encoder.encode(rows.designs());
  const auto models = fit_references(encoder.regression_columns(encoded), samples);
  auto lessons = std::make_shared<FewShotLessons>(
      FewShotLessons{.options = options, .encoder = encoder, .functions = stack(models)});
  const Points points = lessons->start(encoded, static_cast<Index>(typical_rows.size()));
  learn_from_each(*lessons, points, samples, models);
  return KnownDevices(std::move(lessons));
}

}  // namespace fleetfit::transfer
