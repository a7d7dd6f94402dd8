#include "fleetfit/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fleetfit::search {
namespace {

/// Keeps of all that was evaluated what a search is asked for.
class Finds {
 public:
  explicit Finds(const Problem& problem)
      : problem_(problem), archive_(problem.objectives()), kept_(problem.space->genes().size()) {}

  void add(const Outcome& outcome) {
    found_.evaluations += outcome.designs.size();
    for (std::size_t i = 0; i < outcome.designs.size(); ++i) {
      const Score& score = outcome.scores[i];
      if (!std::isfinite(score.violation)) {
        ++found_.unknown;
      } else if (is_better(score, outcome.objectives[i])) {
        best_score_ = score;
        best_ = candidate_of(outcome.designs[i], outcome.objectives[i]);
      }
    }
    add_to_archive(outcome);
  }

  Result<Found> finish() && {
    if (!best_ && found_.evaluations > 0) {
      return fail(ErrorCode::not_found,
                  fmt::format("accuracy and costs are known of none of the {} designs of the space "
                              "{} that were tried",
                              found_.evaluations, problem_.space->name()));
    }
    (best_score_.violation == 0 ? found_.best : found_.nearest) = std::move(best_);
    for (std::size_t i = 0; i < archive_.numbers().size(); ++i)
      found_.pareto.push_back(candidate_of(kept_[i], archive_.points()[i]));
    return std::move(found_);
  }

  void stop() { found_.stopped = true; }

 private:
  /// Of equally good designs the cheaper one.
  bool is_better(const Score& score, std::span<const double> row) const {
    if (!best_) return true;
    if (score != best_score_) return score < best_score_;
    return row[0] < best_->costs[0];
  }

  void add_to_archive(const Outcome& outcome) {
    std::vector<double> rows(outcome.objectives.values.begin(), outcome.objectives.values.end());
    const std::size_t objectives = problem_.objectives();
    for (std::size_t i = 0; i < outcome.designs.size(); ++i)
      if (outcome.scores[i].violation > 0) rows[i * objectives] = std::nan("");
    // Numbers of the archive are places in kept_, the new ones behind those that are there.
    const std::size_t before = archive_.numbers().size();
    archive_.add({rows, objectives}, before);
    space::Population kept(kept_.genes());
    std::vector<std::size_t> numbers(archive_.numbers().begin(), archive_.numbers().end());
    for (const std::size_t number : numbers)
      kept.add(number < before ? space::Design(std::as_const(kept_)[number])
                               : outcome.designs[number - before]);
    kept_ = std::move(kept);
    archive_.renumber();
  }

  const Problem& problem_;
  ParetoArchive archive_;
  space::Population kept_;
  Found found_;
  std::optional<Candidate> best_;  // or the nearest, as long as none keeps the limits
  Score best_score_;
};

Result<space::Population> sample_of(const space::Space& space, const ScaleOptions& options) {
  const auto size = space.size().exact();
  const std::size_t count =
      size ? static_cast<std::size_t>(std::min<std::uint64_t>(*size, options.designs))
           : options.designs;
  return space::sample_designs(space, {.seed = options.seed, .count = count});
}

}  // namespace

Result<Found> run_search(const Problem& problem, Strategy& strategy, core::ThreadPool& pool,
                         const RunOptions& options) {
  FLEETFIT_TRY(check(problem));
  Finds finds(problem);
  space::Population designs(problem.space->genes().size());
  std::vector<Score> scores;
  while (true) {
    if (options.stop.stop_requested()) {
      finds.stop();
      break;
    }
    strategy.propose(designs);
    if (designs.size() == 0) break;
    FLEETFIT_ASSIGN(const auto evaluated, evaluate(problem, designs, pool));
    scores.resize(designs.size());
    for (std::size_t i = 0; i < scores.size(); ++i)
      scores[i] = score(problem, options.scales, evaluated.points()[i]);
    const Outcome outcome{designs, scores, evaluated.points()};
    finds.add(outcome);
    if (options.observe) options.observe(outcome);
    strategy.tell(outcome);
  }
  return std::move(finds).finish();
}

Result<Scales> measure_scales(const Problem& problem, core::ThreadPool& pool,
                              const ScaleOptions& options, space::DesignBatch listed) {
  if (!listed.empty()) return evaluate(problem, listed, pool).map(scales_of);
  FLEETFIT_ASSIGN(const auto designs, sample_of(*problem.space, options));
  return evaluate(problem, designs, pool).map(scales_of);
}

}  // namespace fleetfit::search
