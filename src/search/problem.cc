#include "fleetfit/search/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fleetfit/core/statistics.h"

namespace fleetfit::search {
namespace {

constexpr std::size_t kChunk = 32;  // small, as some sources take milliseconds for a design
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  // of weights such as 0.1 + 0.2 + 0.7

Status evaluate_chunk(const Problem& problem, space::DesignBatch designs, std::span<double> rows) {
  const std::size_t objectives = problem.objectives();
  std::vector<double> column(designs.size());
  for (std::size_t o = 0; o < objectives; ++o) {
    const bool is_accuracy = o == problem.costs.size();
    const auto* source = is_accuracy ? problem.accuracy : problem.costs[o].source;
    FLEETFIT_TRY(source->evaluate(designs, column));
    for (std::size_t i = 0; i < column.size(); ++i)
      rows[i * objectives + o] = is_accuracy ? -column[i] : column[i];
  }
  return {};
}

double scale_of(const Evaluated& evaluated, std::size_t column) {
  std::vector<double> values;
  for (std::size_t i = 0; i < evaluated.size(); ++i) {
    const double value = evaluated.points()[i][column];
    if (std::isfinite(value)) values.push_back(value);
  }
  const auto low = core::quantile(values, 0.05);
  const auto high = core::quantile(values, 0.95);
  if (!low || !high || !(*high > *low)) return 1;
  return *high - *low;
}

}  // namespace

bool Problem::is_weighted() const {
  return std::ranges::any_of(costs, [](const Cost& cost) { return cost.weight > 0; });
}

Status check(const Problem& problem) {
  if (problem.costs.empty()) return fail(ErrorCode::invalid_input, "a search needs a cost");
  double sum = 0;
  for (const Cost& cost : problem.costs) {
    if (!(cost.limit > 0)) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: the limit {} is not positive", cost.name, cost.limit));
    }
    if (!(cost.weight >= 0 && cost.weight <= 1)) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: the weight {} is not from 0 to 1", cost.name, cost.weight));
    }
    sum += cost.weight;
  }
  if (sum > 1 + kRounding) {
    return fail(ErrorCode::invalid_input,
                fmt::format("the weights of the costs add up to {}, more than 1", sum));
  }
  return {};
}

void drop_dominated(std::vector<Candidate>& candidates) {
  if (candidates.empty()) return;
  Evaluated evaluated{.objectives = candidates[0].costs.size() + 1};
  for (const Candidate& candidate : candidates) {
    evaluated.rows.insert(evaluated.rows.end(), candidate.costs.begin(), candidate.costs.end());
    evaluated.rows.push_back(-candidate.accuracy);
  }
  std::vector<Candidate> left;
  for (const std::size_t i : pareto_set(evaluated.points()))
    left.push_back(std::move(candidates[i]));
  candidates = std::move(left);
}

Result<Evaluated> evaluate(const Problem& problem, space::DesignBatch designs,
                           core::ThreadPool& pool) {
  const std::size_t objectives = problem.objectives();
  Evaluated evaluated{.rows = std::vector<double>(designs.size() * objectives),
                      .objectives = objectives};
  std::vector<Status> statuses((designs.size() + kChunk - 1) / kChunk);
  pool.parallel_chunks(designs.size(), kChunk, [&](std::size_t begin, std::size_t end) {
    statuses[begin / kChunk] = evaluate_chunk(
        problem, designs.part(begin, end - begin),
        std::span(evaluated.rows).subspan(begin * objectives, (end - begin) * objectives));
  });
  for (auto& status : statuses) FLEETFIT_TRY(status);
  return evaluated;
}

Scales scales_of(const Evaluated& evaluated) {
  Scales scales{.accuracy = scale_of(evaluated, evaluated.objectives - 1)};
  for (std::size_t i = 0; i + 1 < evaluated.objectives; ++i)
    scales.costs.push_back(scale_of(evaluated, i));
  return scales;
}

Score score(const Problem& problem, const Scales& scales, std::span<const double> row) {
  Score score;
  double accuracy_weight = 1;
  double weighted = 0;
  for (std::size_t i = 0; i < problem.costs.size(); ++i) {
    const Cost& cost = problem.costs[i];
    if (!std::isfinite(row[i])) return {kInfinity, kInfinity};
    if (row[i] > cost.limit) score.violation += row[i] / cost.limit - 1;
    if (cost.weight > 0) weighted += cost.weight * row[i] / scales.costs[i];
    accuracy_weight -= cost.weight;
  }
  if (!std::isfinite(row.back())) return {kInfinity, kInfinity};
  score.loss = problem.is_weighted() ? weighted + accuracy_weight * row.back() / scales.accuracy
                                     : row.back();
  return score;
}

Candidate candidate_of(space::Design design, std::span<const double> row) {
  return {.design = {design.begin(), design.end()},
          .accuracy = -row.back(),
          .costs = {row.begin(), row.end() - 1}};
}

}  // namespace fleetfit::search
