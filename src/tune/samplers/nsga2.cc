#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "tune/samplers/archive.h"
#include "tune/samplers/density.h"
#include "tune/samplers/samplers.h"

namespace fleetfit::tune {
namespace {

constexpr std::size_t kPopulation = 50;
constexpr std::size_t kFewest = 10;  ///< observations at a level before it has a population
constexpr double kCrossover = 0.9;
/// Of the distributions of children around parents and of mutations; larger means nearer.
constexpr double kCrossoverIndex = 15;
constexpr double kMutationIndex = 20;
constexpr int kTries = 20;

/// Between 0 and 1; `draw` uniform. How far a number moves relative to its range.
double polynomial_step(double draw) {
  const double power = 1 / (kMutationIndex + 1);
  return draw < 0.5 ? std::pow(2 * draw, power) - 1 : 1 - std::pow(2 * (1 - draw), power);
}

/// Simulated binary crossover: two numbers with the parents' mean, mostly about as far apart as
/// they are; one of the two.
double crossed(double a, double b, core::Random& random) {
  const double draw = random.uniform();
  const double power = 1 / (kCrossoverIndex + 1);
  const double spread =
      draw <= 0.5 ? std::pow(2 * draw, power) : std::pow(1 / (2 * (1 - draw)), power);
  const double side = random.chance(0.5) ? 1 : -1;
  return 0.5 * (a + b) + side * 0.5 * spread * (a - b);
}

/// The population is the best of all observations: parents and their children compete in
/// every step, so that it makes no difference how many workers there are.
class Nsga2 final : public Sampler {
 public:
  Nsga2(const Parameters& parameters, const SamplerOptions& options)
      : axes_(parameters), levels_(options, {.best = kPopulation, .others = 0}) {}

  void tell(const Observation& observation) override { levels_.tell(observation); }

  Point suggest(std::size_t trial, std::span<const Point> pending, core::Random& random) override {
    const Archive* archive = levels_.highest_with(kFewest);
    if (archive == nullptr || trial < kPopulation) {
      return draw_new(axes_.parameters(), levels_, pending, random);
    }
    const std::vector<Kept>& ranked = archive->best();
    const auto population = std::span(ranked).first(std::min(ranked.size(), kPopulation));
    for (int i = 0; i < kTries; ++i) {
      Point child = breed(population, random);
      if (levels_.is_new(child, pending)) return child;
    }
    return draw_new(axes_.parameters(), levels_, pending, random);
  }

 private:
  /// They are in order, so the better of two is the earlier one.
  static const Point& tournament(std::span<const Kept> population, core::Random& random) {
    const auto one = random.below(population.size());
    const auto other = random.below(population.size());
    return population[std::min(one, other)].point;
  }

  Point breed(std::span<const Kept> population, core::Random& random) const {
    const Point& mother = tournament(population, random);
    const Point& father = tournament(population, random);
    Point child = mother;
    if (random.chance(kCrossover)) {
      for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
        child[axis] = inherited(axis, mother[axis], father[axis], random);
      }
    }
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      if (random.chance(1 / static_cast<double>(axes_.size()))) {
        child[axis] = mutated(axis, child[axis], random);
      }
    }
    axes_.parameters().repair(random, child);
    return child;
  }

  double inherited(std::size_t axis, double mother, double father, core::Random& random) const {
    if (std::isnan(mother)) return father;
    if (std::isnan(father) || random.chance(0.5)) return mother;
    if (axes_[axis].is_choice()) return father;
    const double place =
        crossed(axes_.to_place(axis, mother), axes_.to_place(axis, father), random);
    return axes_.from_place(axis, std::clamp(place, 0.0, 1.0));
  }

  double mutated(std::size_t axis, double value, core::Random& random) const {
    if (std::isnan(value)) return value;
    if (axes_[axis].is_choice()) return random_place(axes_[axis], random);
    const double place = axes_.to_place(axis, value) + polynomial_step(random.uniform());
    const double moved = axes_.from_place(axis, std::clamp(place, 0.0, 1.0));
    if (moved != value || axes_[axis].step == 0) return moved;
    // A move within its cell would be none.
    return axes_.from_place(axis, random.uniform());
  }

  Axes axes_;
  Levels levels_;
};

}  // namespace

std::unique_ptr<Sampler> make_nsga2(const Parameters& parameters, const SamplerOptions& options) {
  return std::make_unique<Nsga2>(parameters, options);
}

}  // namespace fleetfit::tune
