#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/search/pareto.h"
#include "fleetfit/search/problem.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/space.h"

/// Ways to look for designs. A strategy proposes designs and hears what became of them; it knows
/// nothing of sources, devices or terminals. Its seed and what it hears are all that it depends on.
namespace fleetfit::search {

/// What became of a proposal, row by row.
struct Outcome {
  space::DesignBatch designs = {};
  std::span<const Score> scores = {};
  PointsView objectives = {};  ///< costs, and minus the accuracy
};

/// Belongs to one thread. Does not propose a design twice, as each may be expensive to evaluate.
class Strategy {
 public:
  Strategy() = default;
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  /// Replaces `designs` by those to look at next. None: the search is at its end.
  virtual void propose(space::Population& designs) = 0;

  /// What became of all that was proposed last.
  virtual void tell(const Outcome& outcome) = 0;
};

/// How a strategy comes from one design to another. What keeps to a part of a space (to designs
/// near a budget, say) is searched by the same strategies as a whole space. Immutable.
class Moves {
 public:
  Moves() = default;
  virtual ~Moves() = default;
  Moves(const Moves&) = delete;
  Moves& operator=(const Moves&) = delete;

  virtual const space::Space& space() const = 0;

  /// Fills in a random design. False: this attempt found none.
  virtual bool sample(core::Random& random, std::span<space::Choice> design) const = 0;

  /// Changes some genes, each with this probability. Leaves a design that it cannot change.
  virtual void mutate(core::Random& random, double probability,
                      std::span<space::Choice> design) const = 0;

  /// Fills in a child of two designs.
  virtual void crossover(core::Random& random, space::Design a, space::Design b,
                         std::span<space::Choice> child) const = 0;
};

/// Defaults are those of One Proxy's experiments.
struct EvolutionOptions {
  std::size_t population = 1000;
  std::size_t generations = 50;       ///< populations in all, the random one included
  double parent_ratio = 0.25;         ///< share of the population that survives and has children
  double mutation_probability = 0.1;  ///< of each gene of a child that is to mutate
  double mutation_ratio = 0.25;       ///< mutating children, as a share of the population
};

/// The fittest survive; the rest of the next population are their children, each gene from one of
/// two parents, some of them mutated. A child that was there before is mutated until it is new, or
/// given up, so that small spaces are searched to the end instead of turning in circles. `seeds`
/// are part of the first population. Fails with `invalid_input`, naming the option.
Result<std::unique_ptr<Strategy>> make_evolution(const space::Space& space, core::Random random,
                                                 const EvolutionOptions& options = {},
                                                 space::DesignBatch seeds = {});
Result<std::unique_ptr<Strategy>> make_evolution(std::unique_ptr<const Moves> moves,
                                                 core::Random random,
                                                 const EvolutionOptions& options = {},
                                                 space::DesignBatch seeds = {});

/// For whole Pareto sets (Deb's NSGA-II): survivors are the first Pareto sets of old and new
/// designs, thinned out where they are dense. Takes population, generations and mutation
/// probability. Designs that break limits come after all others.
Result<std::unique_ptr<Strategy>> make_nsga2(const space::Space& space, core::Random random,
                                             const EvolutionOptions& options = {});

struct AnnealingOptions {
  std::size_t chains = 50;  ///< walked side by side, so that a step is a batch
  std::size_t steps = 1000;
  /// In units of the spread of random designs' losses; falls from one to the other by a constant
  /// factor.
  double first_temperature = 0.5;
  double last_temperature = 0.001;
};

/// Walks to neighbours: always to better ones, to worse ones the more seldom the later it is.
Result<std::unique_ptr<Strategy>> make_annealing(const space::Space& space, core::Random random,
                                                 const AnnealingOptions& options = {});
Result<std::unique_ptr<Strategy>> make_annealing(std::unique_ptr<const Moves> moves,
                                                 core::Random random,
                                                 const AnnealingOptions& options = {});

struct RandomOptions {
  std::size_t designs = 50'000;
  std::size_t batch = 1000;
};
Result<std::unique_ptr<Strategy>> make_random(const space::Space& space, core::Random random,
                                              const RandomOptions& options = {});

struct ExhaustiveOptions {
  std::uint64_t most = 50'000'000;  ///< larger spaces are refused
  std::size_t batch = 8192;
};

/// All designs, one after the other. Fails with `unsupported`, naming its size, if the space has
/// more than `options.most`.
Result<std::unique_ptr<Strategy>> make_exhaustive(const space::Space& space,
                                                  const ExhaustiveOptions& options = {});

/// These designs, such as those of a table that holds but a part of its space.
std::unique_ptr<Strategy> make_listed(space::Population designs, std::size_t batch = 8192);

/// Ends another strategy when its best score has not become better for so many batches.
std::unique_ptr<Strategy> make_patient(std::unique_ptr<Strategy> strategy, std::size_t patience);

}  // namespace fleetfit::search
