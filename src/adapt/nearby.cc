#include <algorithm>
#include <cmath>

#include "fleetfit/adapt/guided.h"

namespace fleetfit::adapt {

double LatencyWindow::distance(double ms) const {
  return std::max({low_ms - ms, ms - high_ms, 0.0});
}

bool Nearby::init(core::Random& random, std::span<space::Choice> design) const {
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    space_.sample(random, design);
    if (bring_back(random, design, std::nullopt)) return true;
  }
  return false;
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
  return bring_back(random, design, gene);
}

bool Nearby::bring_back(core::Random& random, std::span<space::Choice> design,
                        std::optional<std::size_t> kept_gene) const {
  std::vector<space::Choice> trial(design.size());
  std::vector<space::Choice> best(design.size());
  double distance = window_.distance(latency_ms(design));
  while (distance > 0) {
    double best_distance = distance;
    std::uint64_t equals = 0;
    for (std::size_t gene = 0; gene < design.size(); ++gene) {
      if (gene == kept_gene || !space_.is_active(design, gene)) continue;
      for (std::size_t c = 0; c < space_.genes()[gene].choices.size(); ++c) {
        if (c == design[gene]) continue;
        std::ranges::copy(design, trial.begin());
        trial[gene] = static_cast<space::Choice>(c);
        space_.make_canonical(trial);
        const double there = window_.distance(latency_ms(trial));
        if (there > best_distance || there >= distance) continue;
        equals = there < best_distance ? 1 : equals + 1;
        best_distance = there;
        // Of several that are equally near, each with the same probability.
        if (random.below(equals) == 0) best = trial;
      }
    }
    if (equals == 0) return false;
    std::ranges::copy(best, design.begin());
    distance = best_distance;
  }
  return true;
}

}  // namespace fleetfit::adapt
