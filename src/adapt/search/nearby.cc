#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "adapt/branch_paths.h"
#include "fleetfit/adapt/guided.h"

namespace fleetfit::adapt {
namespace {

double budget_or_slowest(const SubnetProblem& problem) {
  double slowest = 0;
  for (std::size_t m = 0; m < problem.models.size(); ++m)
    slowest = std::max(slowest,
                       problem.table.subnet_ms(best_path(problem.models[m], m, problem.table.ms)));
  return std::min(problem.budget_ms, slowest);
}

class NearbyMoves final : public search::Moves {
 public:
  NearbyMoves(const SubnetProblem& problem, double window)
      : space_(problem.space),
        nearby_(problem.space, problem.table, window_around(problem, window)) {}

  const space::Space& space() const override { return space_; }

  bool sample(core::Random& random, std::span<space::Choice> design) const override {
    return nearby_.init_rest(random, 0, design);
  }

  void mutate(core::Random& random, double /*probability*/,
              std::span<space::Choice> design) const override {
    std::vector<space::Choice> mutant(design.begin(), design.end());
    if (nearby_.mutate(random, mutant)) std::ranges::copy(mutant, design.begin());
  }

  /// A mixture of two subnets would be far from the budget: children begin as their parents.
  void crossover(core::Random& /*random*/, space::Design a, space::Design /*b*/,
                 std::span<space::Choice> child) const override {
    std::ranges::copy(a, child.begin());
  }

 private:
  const elastic::SubnetSpace& space_;
  Nearby nearby_;
};

}  // namespace

std::unique_ptr<const search::Moves> nearby_moves(const SubnetProblem& problem, double window) {
  return std::make_unique<NearbyMoves>(problem, window);
}

LatencyWindow window_below(const SubnetProblem& problem, double share) {
  const double ms = budget_or_slowest(problem);
  return {.low_ms = (1 - share) * ms, .high_ms = problem.budget_ms};
}

LatencyWindow window_around(const SubnetProblem& problem, double share) {
  return {.low_ms = (1 - share) * budget_or_slowest(problem),
          .high_ms = (1 + share) * problem.budget_ms};
}

double LatencyWindow::distance(double ms) const {
  return std::max({low_ms - ms, ms - high_ms, 0.0});
}

bool Nearby::init(core::Random& random, std::span<space::Choice> design) const {
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt)
    if (init_rest(random, 0, design)) return true;
  return false;
}

bool Nearby::init_rest(core::Random& random, std::size_t first_gene,
                       std::span<space::Choice> design) const {
  std::vector<space::Choice> drawn(design.size());
  space_.sample(random, drawn);
  std::ranges::copy(std::span(drawn).subspan(first_gene), design.subspan(first_gene).begin());
  space_.make_canonical(design);
  const auto is_later = [=](std::size_t gene) { return gene >= first_gene; };
  return bring_back(random, is_later, design);
}

bool Nearby::mutate(core::Random& random, std::span<space::Choice> design) const {
  std::vector<std::size_t> genes;
  for (std::size_t gene = 0; gene < design.size(); ++gene)
    if (space_.is_active(design, gene) && space_.genes()[gene].choices.size() > 1)
      genes.push_back(gene);
  const std::size_t gene = genes[random.below(genes.size())];
  const std::size_t choices = space_.genes()[gene].choices.size();
  design[gene] =
      static_cast<space::Choice>((design[gene] + 1 + random.below(choices - 1)) % choices);
  space_.make_canonical(design);
  const auto is_other = [=](std::size_t other) { return other != gene; };
  return bring_back(random, is_other, design);
}

bool Nearby::bring_back(core::Random& random, const Movable& movable,
                        std::span<space::Choice> design) const {
  double distance = window_.distance(latency_ms(design));
  while (distance > 0) {
    const auto nearest = nearest_change(random, movable, design);
    const double there = window_.distance(latency_ms(nearest));
    if (!(there < distance)) return false;
    std::ranges::copy(nearest, design.begin());
    distance = there;
  }
  return true;
}

/// Of several that are equally near, each with the same probability.
std::vector<space::Choice> Nearby::nearest_change(core::Random& random, const Movable& movable,
                                                  space::Design design) const {
  std::vector<space::Choice> nearest(design.begin(), design.end());
  double least = std::numeric_limits<double>::infinity();
  std::uint64_t equals = 0;
  for (std::size_t gene = 0; gene < design.size(); ++gene) {
    if (!movable(gene) || !space_.is_active(design, gene)) continue;
    for (std::size_t c = 0; c < space_.genes()[gene].choices.size(); ++c) {
      if (c == design[gene]) continue;
      std::vector<space::Choice> changed(design.begin(), design.end());
      changed[gene] = static_cast<space::Choice>(c);
      space_.make_canonical(changed);
      const double distance = window_.distance(latency_ms(changed));
      if (distance > least) continue;
      equals = distance < least ? 1 : equals + 1;
      least = distance;
      if (random.below(equals) == 0) nearest = std::move(changed);
    }
  }
  return nearest;
}

}  // namespace fleetfit::adapt
