#include <algorithm>
#include <utility>
#include <vector>

#include "fleetfit/search/pareto.h"
#include "fleetfit/search/strategy.h"
#include "search/fresh.h"

namespace fleetfit::search {
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
