#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fleetfit/core/statistics.h"
#include "fleetfit/search/strategy.h"
#include "search/fresh.h"

namespace fleetfit::search {
namespace {

// A design that exceeds a limit by a tenth is as bad as one that loses a whole spread.
constexpr double kPenalty = 10;
constexpr int kAttempts = 16;

double spread_of(std::span<const Score> scores) {
  std::vector<double> losses;
  for (const Score& score : scores)
    if (std::isfinite(score.loss)) losses.push_back(score.loss);
  const auto spread = core::stddev(losses);
  return spread && *spread > 0 ? *spread : 1;
}

class Annealing final : public Strategy {
 public:
  Annealing(std::unique_ptr<const Moves> moves, core::Random random,
            const AnnealingOptions& options)
      : random_(random), options_(options), fresh_(std::move(moves)) {}

  void propose(space::Population& designs) override {
    designs.resize(0);
    if (chains_.empty()) {
      fresh_.sample(random_, options_.chains, designs);
      return;
    }
    // Neighbours that were met before need no evaluation; their step is taken at once.
    while (designs.size() == 0 && step_ < options_.steps) {
      pick_neighbours(designs);
      if (designs.size() == 0) walk();
    }
  }

  void tell(const Outcome& outcome) override {
    scores_.insert(scores_.end(), outcome.scores.begin(), outcome.scores.end());
    if (!chains_.empty()) return walk();
    spread_ = spread_of(scores_);
    for (std::size_t i = 0; i < scores_.size(); ++i) chains_.push_back(i);
  }

 private:
  void pick_neighbours(space::Population& designs) {
    const std::size_t genes = fresh_.moves().space().genes().size();
    const double probability = 1.0 / static_cast<double>(genes);
    std::vector<space::Choice> neighbour(genes);
    neighbours_.clear();
    for (const std::size_t at : chains_) {
      const auto here = fresh_.seen().designs()[at];
      std::ranges::copy(here, neighbour.begin());
      for (int i = 0; i < kAttempts && std::ranges::equal(neighbour, here); ++i)
        fresh_.moves().mutate(random_, probability, neighbour);
      if (fresh_.seen().add(neighbour)) designs.add(neighbour);
      neighbours_.push_back(*fresh_.seen().find(neighbour));
    }
  }

  void walk() {
    const double temperature = temperature_now();
    for (std::size_t chain = 0; chain < chains_.size(); ++chain) {
      const double here = energy(chains_[chain]);
      const double there = energy(neighbours_[chain]);
      const double chance = random_.uniform();
      if (there <= here || chance < std::exp((here - there) / temperature))
        chains_[chain] = neighbours_[chain];
    }
    ++step_;
  }

  double energy(std::size_t design) const {
    const Score& score = scores_[design];
    return score.loss / spread_ + kPenalty * score.violation;
  }

  double temperature_now() const {
    const double progress = static_cast<double>(step_) / static_cast<double>(options_.steps);
    return options_.first_temperature *
           std::pow(options_.last_temperature / options_.first_temperature, progress);
  }

  core::Random random_;
  AnnealingOptions options_;
  Fresh fresh_;
  std::vector<Score> scores_;            // of all designs that were seen, in order
  std::vector<std::size_t> chains_;      // where each is, by number of the design
  std::vector<std::size_t> neighbours_;  // where each may go
  std::size_t step_ = 0;
  double spread_ = 1;
};

}  // namespace

Result<std::unique_ptr<Strategy>> make_annealing(const space::Space& space, core::Random random,
                                                 const AnnealingOptions& options) {
  return make_annealing(moves_of(space), random, options);
}

Result<std::unique_ptr<Strategy>> make_annealing(std::unique_ptr<const Moves> moves,
                                                 core::Random random,
                                                 const AnnealingOptions& options) {
  if (options.chains < 1) return fail(ErrorCode::invalid_input, "chains: there is none");
  if (!(options.last_temperature > 0) || !(options.first_temperature >= options.last_temperature) ||
      !std::isfinite(options.first_temperature)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("temperature: it cannot fall from {} to {}", options.first_temperature,
                            options.last_temperature));
  }
  return std::make_unique<Annealing>(std::move(moves), random.split("annealing"), options);
}

}  // namespace fleetfit::search
