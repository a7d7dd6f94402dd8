#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "fleetfit/adapt/guided.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/space/design_index.h"

namespace fleetfit::adapt {
namespace {

constexpr int kAttempts = 12;

/// Adds random subnets near the budget until there are `count`, fewer if new ones are hard to find.
void init_nearby(const Nearby& nearby, core::Random& random, std::size_t count,
                 space::DesignIndex& seen) {
  std::vector<space::Choice> design(seen.designs().genes());
  for (std::size_t tries = 0; tries < kAttempts * count && seen.size() < count; ++tries)
    if (nearby.init(random, design)) seen.add(design);
}

class NearbyEvolution final : public search::Strategy {
 public:
  NearbyEvolution(const SubnetProblem& problem, core::Random random,
                  const NearbyEvolutionOptions& options)
      : nearby_(problem.space, problem.table, window_around(problem, options.window)),
        random_(random),
        options_(options),
        seen_(problem.space) {}

  void propose(space::Population& designs) override {
    designs.resize(0);
    if (generation_ == 0) {
      init_nearby(nearby_, random_, options_.population, seen_);
      designs = seen_.designs();
    } else if (generation_ < options_.generations && !parents_.empty()) {
      breed(designs);
    }
    ++generation_;
  }

  void tell(const search::Outcome& outcome) override {
    for (std::size_t i = 0; i < outcome.designs.size(); ++i)
      parents_.push_back({outcome.scores[i], *seen_.find(outcome.designs[i])});
    std::ranges::sort(parents_);
    const auto ratio = options_.parent_ratio * static_cast<double>(options_.population);
    const auto survivors = std::max<std::size_t>(2, static_cast<std::size_t>(std::lround(ratio)));
    parents_.resize(std::min(parents_.size(), survivors));
  }

 private:
  struct Parent {
    search::Score score;
    std::size_t number;  // of the design

    auto operator<=>(const Parent&) const = default;
  };

  void breed(space::Population& children) {
    const std::size_t wanted = options_.population - std::min(options_.population, parents_.size());
    for (std::size_t i = 0; i < wanted; ++i) {
      const auto parent = seen_.designs()[parents_[random_.below(parents_.size())].number];
      std::vector<space::Choice> child(parent.begin(), parent.end());
      for (int attempt = 0; attempt < kAttempts; ++attempt) {
        if (!nearby_.mutate(random_, child) || !seen_.add(child)) continue;
        children.add(child);
        break;
      }
    }
  }

  Nearby nearby_;
  core::Random random_;
  NearbyEvolutionOptions options_;
  space::DesignIndex seen_;
  std::vector<Parent> parents_;
  std::size_t generation_ = 0;
};

class NearbyAnnealing final : public search::Strategy {
 public:
  NearbyAnnealing(const SubnetProblem& problem, core::Random random,
                  const NearbyAnnealingOptions& options)
      : nearby_(problem.space, problem.table, window_around(problem, options.window)),
        random_(random),
        options_(options),
        seen_(problem.space) {}

  void propose(space::Population& designs) override {
    designs.resize(0);
    if (chains_.empty()) {
      init_nearby(nearby_, random_, options_.chains, seen_);
      designs = seen_.designs();
      return;
    }
    // Neighbours that were met before need no evaluation; their step is taken at once.
    while (designs.size() == 0 && step_ < options_.steps) {
      pick_neighbours(designs);
      if (designs.size() == 0) walk();
    }
  }

  void tell(const search::Outcome& outcome) override {
    scores_.insert(scores_.end(), outcome.scores.begin(), outcome.scores.end());
    if (!chains_.empty()) return walk();
    std::vector<double> losses;
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      chains_.push_back(i);
      losses.push_back(scores_[i].loss);
    }
    spread_ = std::max(core::stddev(losses).value_or(1), 1e-9);
  }

 private:
  void pick_neighbours(space::Population& designs) {
    neighbours_.clear();
    for (const std::size_t at : chains_) {
      const auto here = seen_.designs()[at];
      std::vector<space::Choice> neighbour(here.begin(), here.end());
      if (!nearby_.mutate(random_, neighbour)) {
        neighbours_.push_back(at);
        continue;
      }
      if (seen_.add(neighbour)) designs.add(neighbour);
      neighbours_.push_back(*seen_.find(neighbour));
    }
  }

  void walk() {
    const double progress = static_cast<double>(step_++) / static_cast<double>(options_.steps);
    const double temperature =
        options_.first_temperature *
        std::pow(options_.last_temperature / options_.first_temperature, progress);
    for (std::size_t chain = 0; chain < chains_.size(); ++chain) {
      const double loss = energy(neighbours_[chain]) - energy(chains_[chain]);
      if (random_.uniform() < std::exp(-loss / temperature)) chains_[chain] = neighbours_[chain];
    }
  }

  // The window keeps subnets from exceeding the budget by much; a tenth costs a whole spread.
  double energy(std::size_t number) const {
    constexpr double kPenalty = 10;
    return scores_[number].loss / spread_ + kPenalty * scores_[number].violation;
  }

  Nearby nearby_;
  core::Random random_;
  NearbyAnnealingOptions options_;
  space::DesignIndex seen_;
  std::vector<search::Score> scores_;    // by number of the design
  std::vector<std::size_t> chains_;      // where each is
  std::vector<std::size_t> neighbours_;  // where each may go
  std::size_t step_ = 0;
  double spread_ = 1;
};

class Patient final : public search::Strategy {
 public:
  Patient(std::unique_ptr<search::Strategy> strategy, std::size_t patience)
      : strategy_(std::move(strategy)), patience_(patience) {}

  void propose(space::Population& designs) override {
    designs.resize(0);
    if (idle_ < patience_) strategy_->propose(designs);
  }

  void tell(const search::Outcome& outcome) override {
    ++idle_;
    for (const auto& score : outcome.scores) {
      if (best_ && !(score < *best_)) continue;
      best_ = score;
      idle_ = 0;
    }
    strategy_->tell(outcome);
  }

 private:
  std::unique_ptr<search::Strategy> strategy_;
  std::size_t patience_;
  std::size_t idle_ = 0;
  std::optional<search::Score> best_;
};

}  // namespace

std::unique_ptr<search::Strategy> make_nearby_evolution(const SubnetProblem& problem,
                                                        core::Random random,
                                                        const NearbyEvolutionOptions& options) {
  return std::make_unique<NearbyEvolution>(problem, random.split("evolution"), options);
}

std::unique_ptr<search::Strategy> make_nearby_annealing(const SubnetProblem& problem,
                                                        core::Random random,
                                                        const NearbyAnnealingOptions& options) {
  return std::make_unique<NearbyAnnealing>(problem, random.split("annealing"), options);
}

std::unique_ptr<search::Strategy> make_patient(std::unique_ptr<search::Strategy> strategy,
                                               std::size_t patience) {
  return std::make_unique<Patient>(std::move(strategy), patience);
}

}  // namespace fleetfit::adapt
