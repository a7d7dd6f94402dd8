#include "search/fresh.h"

#include <algorithm>
#include <vector>

namespace fleetfit::search {
namespace {

class SpaceMoves final : public Moves {
 public:
  explicit SpaceMoves(const space::Space& space) : space_(space) {}

  const space::Space& space() const override { return space_; }

  bool sample(core::Random& random, std::span<space::Choice> design) const override {
    space_.sample(random, design);
    return true;
  }

  void mutate(core::Random& random, double probability,
              std::span<space::Choice> design) const override {
    space_.mutate(random, probability, design);
  }

  void crossover(core::Random& random, space::Design a, space::Design b,
                 std::span<space::Choice> child) const override {
    space_.crossover(random, a, b, child);
  }

 private:
  const space::Space& space_;
};

}  // namespace

std::unique_ptr<const Moves> moves_of(const space::Space& space) {
  return std::make_unique<SpaceMoves>(space);
}

void Fresh::sample(core::Random& random, std::size_t count, space::Population& designs) {
  constexpr std::size_t kMostFailures = 1000;
  std::vector<space::Choice> design(moves_->space().genes().size());
  std::size_t failures = 0;
  while (designs.size() < count && failures < kMostFailures) {
    failures = moves_->sample(random, design) && seen_.add(design) ? 0 : failures + 1;
    if (failures == 0) designs.add(design);
  }
}

bool Fresh::make_fresh(core::Random& random, double probability, std::span<space::Choice> design) {
  constexpr int kAttempts = 12;
  const double least = 1.0 / static_cast<double>(design.size());
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (seen_.add(design)) return true;
    moves_->mutate(random, std::max(probability, least), design);
  }
  return false;
}

}  // namespace fleetfit::search
