#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "fleetfit/search/pareto.h"
#include "fleetfit/search/strategy.h"
#include "search/fresh.h"

namespace fleetfit::search {
namespace {

class Evolution final : public Strategy {
 public:
  Evolution(std::unique_ptr<const Moves> moves, core::Random random,
            const EvolutionOptions& options, space::DesignBatch seeds)
      : random_(random),
        options_(options),
        fresh_(std::move(moves)),
        members_(fresh_.moves().space().genes().size()) {
    for (std::size_t i = 0; i < seeds.size(); ++i)
      if (fresh_.seen().add(seeds[i])) members_.add(seeds[i]);
  }

  void propose(space::Population& designs) override {
    if (generation_ == 0) {
      designs = std::exchange(members_, space::Population(members_.genes()));
      fresh_.sample(random_, options_.population, designs);
    } else {
      designs.resize(0);
      if (generation_ < options_.generations && scores_.size() > 1) breed(designs);
    }
    ++generation_;
  }

  void tell(const Outcome& outcome) override {
    for (std::size_t i = 0; i < outcome.designs.size(); ++i) members_.add(outcome.designs[i]);
    scores_.insert(scores_.end(), outcome.scores.begin(), outcome.scores.end());
    select();
  }

 private:
  std::size_t share(double ratio) const {
    return static_cast<std::size_t>(std::lround(ratio * static_cast<double>(options_.population)));
  }

  void select() {
    std::vector<std::size_t> order(scores_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t parents =
        std::min(std::max<std::size_t>(share(options_.parent_ratio), 2), order.size());
    const auto fitter = [&](std::size_t a, std::size_t b) {
      return scores_[a] != scores_[b] ? scores_[a] < scores_[b] : a < b;
    };
    std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(parents - 1),
                             fitter);
    order.resize(parents);
    std::ranges::sort(order);
    space::Population kept(members_.genes());
    std::vector<Score> scores;
    for (const std::size_t i : order) {
      kept.add(std::as_const(members_)[i]);
      scores.push_back(scores_[i]);
    }
    members_ = std::move(kept);
    scores_ = std::move(scores);
  }

  void breed(space::Population& children) {
    const std::size_t wanted = options_.population - std::min(options_.population, scores_.size());
    const std::size_t mutants = std::min(share(options_.mutation_ratio), wanted);
    std::vector<space::Choice> child(members_.genes());
    for (std::size_t i = 0; i < wanted; ++i) {
      const auto [a, b] = two_parents();
      fresh_.moves().crossover(random_, a, b, child);
      if (i < mutants) fresh_.moves().mutate(random_, options_.mutation_probability, child);
      if (fresh_.make_fresh(random_, options_.mutation_probability, child)) children.add(child);
    }
  }

  std::pair<space::Design, space::Design> two_parents() {
    const std::size_t a = random_.below(scores_.size());
    const std::size_t b = (a + 1 + random_.below(scores_.size() - 1)) % scores_.size();
    return {std::as_const(members_)[a], std::as_const(members_)[b]};
  }

  core::Random random_;
  EvolutionOptions options_;
  Fresh fresh_;
  std::size_t generation_ = 0;
  space::Population members_;  // first the seeds, then the parents
  std::vector<Score> scores_;  // of the parents
};

}  // namespace

Status check(const EvolutionOptions& options) {
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  if (options.population < 2) return fail(ErrorCode::invalid_input, "population: less than 2");
  if (options.generations < 1) return fail(ErrorCode::invalid_input, "generations: less than 1");
  for (const auto& [name, value] : {std::pair{"parent ratio", options.parent_ratio},
                                    std::pair{"mutation probability", options.mutation_probability},
                                    std::pair{"mutation ratio", options.mutation_ratio}}) {
    if (!is_share(value))
      return fail(ErrorCode::invalid_input, fmt::format("{}: {} is not from 0 to 1", name, value));
  }
  return {};
}

Result<std::unique_ptr<Strategy>> make_evolution(const space::Space& space, core::Random random,
                                                 const EvolutionOptions& options,
                                                 space::DesignBatch seeds) {
  return make_evolution(moves_of(space), random, options, seeds);
}

Result<std::unique_ptr<Strategy>> make_evolution(std::unique_ptr<const Moves> moves,
                                                 core::Random random,
                                                 const EvolutionOptions& options,
                                                 space::DesignBatch seeds) {
  FLEETFIT_TRY(check(options));
  return std::make_unique<Evolution>(std::move(moves), random.split("evolution"), options, seeds);
}

namespace {

class Nsga2 final : public Strategy {
 public:
  Nsga2(std::unique_ptr<const Moves> moves, core::Random random, const EvolutionOptions& options)
      : random_(random),
        options_(options),
        fresh_(std::move(moves)),
        members_(fresh_.moves().space().genes().size()) {}

  void propose(space::Population& designs) override {
    designs.resize(0);
    if (generation_ == 0) {
      fresh_.sample(random_, options_.population, designs);
    } else if (generation_ < options_.generations && members_.size() > 1) {
      breed(designs);
    }
    ++generation_;
  }

  void tell(const Outcome& outcome) override {
    for (std::size_t i = 0; i < outcome.designs.size(); ++i) members_.add(outcome.designs[i]);
    for (const Score& score : outcome.scores) violations_.push_back(score.violation);
    const auto& rows = outcome.objectives;
    rows_.insert(rows_.end(), rows.values.begin(), rows.values.end());
    select(rows.objectives);
  }

 private:
  void select(std::size_t objectives) {
    const PointsView points{rows_, objectives};
    auto order = best_first(points, violations_);
    order.resize(std::min(order.size(), options_.population));
    space::Population members(members_.genes());
    std::vector<double> violations;
    std::vector<double> rows;
    for (const std::size_t i : order) {
      members.add(std::as_const(members_)[i]);
      violations.push_back(violations_[i]);
      rows.insert(rows.end(), points[i].begin(), points[i].end());
    }
    members_ = std::move(members);
    violations_ = std::move(violations);
    rows_ = std::move(rows);
  }

  void breed(space::Population& children) {
    std::vector<space::Choice> child(members_.genes());
    for (std::size_t i = 0; i < options_.population; ++i) {
      const space::Design a = tournament();
      const space::Design b = tournament();
      fresh_.moves().crossover(random_, a, b, child);
      fresh_.moves().mutate(random_, options_.mutation_probability, child);
      if (fresh_.make_fresh(random_, options_.mutation_probability, child)) children.add(child);
    }
  }

  /// The better of two that were drawn.
  space::Design tournament() {
    const std::size_t one = random_.below(members_.size());
    const std::size_t other = random_.below(members_.size());
    return std::as_const(members_)[std::min(one, other)];
  }

  core::Random random_;
  EvolutionOptions options_;
  Fresh fresh_;
  std::size_t generation_ = 0;
  space::Population members_;  // the best first
  std::vector<double> violations_;
  std::vector<double> rows_;
};

}  // namespace

Result<std::unique_ptr<Strategy>> make_nsga2(const space::Space& space, core::Random random,
                                             const EvolutionOptions& options) {
  FLEETFIT_TRY(check(options));
  return std::make_unique<Nsga2>(moves_of(space), random.split("nsga2"), options);
}

}  // namespace fleetfit::search
