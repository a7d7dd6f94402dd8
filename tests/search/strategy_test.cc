#include "fleetfit/search/strategy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "fleetfit/search/search.h"
#include "tests/search/toy_space.h"

namespace fleetfit::search {
namespace {

using Make = std::function<Result<std::unique_ptr<Strategy>>(const space::Space&, core::Random)>;

constexpr EvolutionOptions kSmall{.population = 60, .generations = 30};

struct Named {
  const char* name;
  Make make;
};

std::vector<Named> all_strategies() {
  return {{"evolution", [](const auto& s, auto r) { return make_evolution(s, r, kSmall); }},
          {"nsga2", [](const auto& s, auto r) { return make_nsga2(s, r, kSmall); }},
          {"annealing",
           [](const auto& s, auto r) { return make_annealing(s, r, {.chains = 8, .steps = 300}); }},
          {"random",
           [](const auto& s, auto r) { return make_random(s, r, {.designs = 500, .batch = 64}); }},
          {"exhaustive", [](const auto& s, auto) { return make_exhaustive(s, {.batch = 50}); }}};
}

/// Genes weigh 1, 2, 3 in accuracy and 3, 2, 1 in latency, so that good designs have large later
/// genes.
class Toy {
 public:
  Toy(std::size_t genes, std::size_t choices)
      : space_(genes, choices),
        accuracy_([](space::Design d) { return sum_of(d, {1, 2, 3}); }),
        latency_([](space::Design d) { return 1 + sum_of(d, {3, 2, 1}); }) {}

  Problem problem(double limit = std::numeric_limits<double>::infinity()) const {
    return {.space = &space_,
            .accuracy = &accuracy_,
            .costs = {{.name = "latency_ms", .source = &latency_, .limit = limit}}};
  }

  const ToySpace& space() const { return space_; }

 private:
  ToySpace space_;
  FunctionSource accuracy_;
  FunctionSource latency_;
};

class EachStrategy : public testing::TestWithParam<std::size_t> {
 protected:
  static Named named() { return all_strategies()[GetParam()]; }

  static Found run(const Problem& problem, std::uint64_t seed = 1, int threads = 1) {
    const auto strategy = named().make(*problem.space, core::Random(seed)).value();
    core::ThreadPool pool(threads);
    return run_search(problem, *strategy, pool).value();
  }
};

TEST_P(EachStrategy, GivesTheSameForAnyNumberOfThreads) {
  const Toy toy(6, 3);
  const auto one = run(toy.problem(12), 5, 1);
  const auto two = run(toy.problem(12), 5, 2);
  EXPECT_EQ(one.best, two.best);
  EXPECT_EQ(one.pareto, two.pareto);
  EXPECT_EQ(one.evaluations, two.evaluations);
}

TEST_P(EachStrategy, ProposesNoDesignTwice) {
  const Toy toy(6, 3);
  const auto strategy = named().make(toy.space(), core::Random(3)).value();
  std::set<std::vector<space::Choice>> seen;
  std::size_t proposed = 0;
  core::ThreadPool pool(1);
  const auto problem = toy.problem();
  const auto found =
      run_search(problem, *strategy, pool, {.observe = [&](const Outcome& outcome) {
                   for (std::size_t i = 0; i < outcome.designs.size(); ++i) {
                     seen.emplace(outcome.designs[i].begin(), outcome.designs[i].end());
                     ++proposed;
                     EXPECT_TRUE(toy.space().check(outcome.designs[i]));
                   }
                 }});
  EXPECT_EQ(seen.size(), proposed);
  EXPECT_EQ(found->evaluations, proposed);
}

TEST_P(EachStrategy, KeepsTheLimitAndFindsWhatIsBestInASmallSpace) {
  const Toy toy(4, 3);  // 81 designs
  const auto found = run(toy.problem(9));
  // All designs by hand: the most accurate with 1 + 3a + 2b + c + 3d <= 9, accuracy a + 2b + 3c +
  // d, has c = 2, b = 2 (latency 7), which leaves 2: too little for a or d. Accuracy 10.
  ASSERT_TRUE(found.best);
  EXPECT_EQ(found.best->accuracy, 10);
  EXPECT_EQ(found.best->costs[0], 7);
  EXPECT_FALSE(found.nearest);
  for (const auto& candidate : found.pareto) EXPECT_LE(candidate.costs[0], 9);
}

TEST_P(EachStrategy, NamesTheNearestDesignIfNoneKeepsTheLimit) {
  const Toy toy(3, 3);
  const auto found = run(toy.problem(0.5));
  EXPECT_FALSE(found.best);
  ASSERT_TRUE(found.nearest);
  EXPECT_EQ(found.nearest->costs[0], 1);  // all genes 0
  EXPECT_TRUE(found.pareto.empty());
}

TEST_P(EachStrategy, SaysThatNothingIsKnown) {
  const ToySpace space(3, 3);
  const FunctionSource nothing([](space::Design) { return std::nan(""); });
  const Problem problem{
      .space = &space, .accuracy = &nothing, .costs = {{.name = "x", .source = &nothing}}};
  const auto strategy = named().make(space, core::Random(1)).value();
  core::ThreadPool pool(1);
  const auto found = run_search(problem, *strategy, pool);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::not_found);
}

TEST_P(EachStrategy, StopsWhenAsked) {
  const Toy toy(3, 3);
  const auto strategy = named().make(toy.space(), core::Random(1)).value();
  std::stop_source stop;
  core::ThreadPool pool(1);
  const auto found = run_search(toy.problem(), *strategy, pool,
                                {.stop = stop.get_token(),
                                 .observe = [&](const Outcome&) { stop.request_stop(); }})
                         .value();
  EXPECT_TRUE(found.stopped);
  EXPECT_TRUE(found.best);
}

INSTANTIATE_TEST_SUITE_P(Strategies, EachStrategy,
                         testing::Range<std::size_t>(0, all_strategies().size()),
                         [](const auto& param) { return all_strategies()[param.param].name; });

TEST(Evolution, FindsTheOptimumOfASeparableObjectiveInALargeSpace) {
  // 5^30 designs; the best one has all genes at 4.
  const ToySpace space(30, 5);
  const FunctionSource accuracy([](space::Design d) { return sum_of(d, {1, 2, 3}); });
  const FunctionSource latency([](space::Design) { return 1.0; });
  const Problem problem{.space = &space,
                        .accuracy = &accuracy,
                        .costs = {{.name = "latency_ms", .source = &latency, .limit = 2}}};
  const auto strategy = make_evolution(space, core::Random(1)).value();
  core::ThreadPool pool(1);
  const auto found = run_search(problem, *strategy, pool).value();
  EXPECT_EQ(found.best->design, std::vector<space::Choice>(30, 4));
}

TEST(Evolution, EvaluatesTheWholePopulationOnceAndThenTheChildren) {
  const ToySpace space(30, 5);
  const FunctionSource any([](space::Design d) { return 1.0 + d[0]; });
  const Problem problem{
      .space = &space, .accuracy = &any, .costs = {{.name = "x", .source = &any}}};
  const auto strategy = make_evolution(space, core::Random(1), {.generations = 4}).value();
  std::vector<std::size_t> batches;
  core::ThreadPool pool(1);
  const auto note = [&](const Outcome& o) { batches.push_back(o.designs.size()); };
  ASSERT_TRUE(run_search(problem, *strategy, pool, {.observe = note}));
  EXPECT_EQ(batches, (std::vector<std::size_t>{1000, 750, 750, 750}));
}

TEST(Evolution, StartsFromItsSeeds) {
  const ToySpace space(30, 5);
  space::Population seeds(30, 1);
  seeds[0][7] = 3;
  const auto strategy = make_evolution(space, core::Random(1), {.population = 10}, seeds).value();
  space::Population first(30);
  strategy->propose(first);
  EXPECT_EQ(first.size(), 10U);
  EXPECT_TRUE(std::ranges::equal(first[0], seeds[0]));
}

TEST(Evolution, RefusesOptionsThatMakeNoSense) {
  const ToySpace space(3, 3);
  const auto refused = [&](const EvolutionOptions& options) {
    return make_evolution(space, core::Random(1), options).error().message;
  };
  EXPECT_NE(refused({.population = 1}).find("population"), std::string::npos);
  EXPECT_NE(refused({.generations = 0}).find("generations"), std::string::npos);
  EXPECT_NE(refused({.parent_ratio = 1.5}).find("parent ratio"), std::string::npos);
  EXPECT_NE(refused({.mutation_probability = std::nan("")}).find("mutation probability"),
            std::string::npos);
  EXPECT_NE(refused({.mutation_ratio = -1}).find("mutation ratio"), std::string::npos);
  EXPECT_FALSE(make_annealing(space, core::Random(1), {.first_temperature = 0}));
  EXPECT_FALSE(make_annealing(space, core::Random(1), {.chains = 0}));
}

/// Designs whose genes add up to ten; a mutation takes from one gene what it adds to another.
class SumOfTen final : public Moves {
 public:
  explicit SumOfTen(const space::Space& space) : space_(space) {}

  const space::Space& space() const override { return space_; }

  bool sample(core::Random& random, std::span<space::Choice> design) const override {
    space_.sample(random, design);
    return sum_of(design, {1}) == 10;
  }

  void mutate(core::Random& random, double /*probability*/,
              std::span<space::Choice> design) const override {
    auto& from = design[random.below(design.size())];
    auto& to = design[random.below(design.size())];
    if (from == 0 || to + 1U >= space_.genes()[0].choices.size()) return;
    --from;
    ++to;
  }

  void crossover(core::Random& /*random*/, space::Design a, space::Design /*b*/,
                 std::span<space::Choice> child) const override {
    std::ranges::copy(a, child.begin());
  }

 private:
  const space::Space& space_;
};

TEST(Moves, KeepEvolutionAndAnnealingToAPartOfTheSpace) {
  const ToySpace space(6, 5);
  const FunctionSource accuracy([](space::Design d) { return sum_of(d, {1, 2, 3, 4, 5, 6}); });
  const FunctionSource latency([](space::Design) { return 1.0; });
  const Problem problem{.space = &space,
                        .accuracy = &accuracy,
                        .costs = {{.name = "latency_ms", .source = &latency}}};
  core::ThreadPool pool(1);
  for (const bool anneals : {false, true}) {
    const auto moves = [&] { return std::make_unique<SumOfTen>(space); };
    const auto strategy =
        anneals ? make_annealing(moves(), core::Random(1), {.chains = 8, .steps = 300})
                : make_evolution(moves(), core::Random(1),
                                 {.population = 60, .generations = 30, .mutation_ratio = 1});
    const auto found = run_search(problem, **strategy, pool).value();
    // Ten in the genes that count the most, at most four in each.
    EXPECT_EQ(found.best->design, (std::vector<space::Choice>{0, 0, 0, 2, 4, 4}));
    for (const auto& candidate : found.pareto) EXPECT_EQ(sum_of(candidate.design, {1}), 10);
  }
}

TEST(Nsga2, FindsNearlyAllOfTheHypervolume) {
  const Toy toy(8, 4);
  const auto problem = toy.problem();
  core::ThreadPool pool(1);
  const auto all = make_exhaustive(toy.space()).value();
  const auto some =
      make_nsga2(toy.space(), core::Random(1), {.population = 100, .generations = 40}).value();
  const auto truth = run_search(problem, *all, pool).value();
  const auto found = run_search(problem, *some, pool).value();
  EXPECT_EQ(truth.evaluations, 65'536U);
  const auto volume = [](const Found& f) {
    std::vector<double> rows;
    for (const auto& c : f.pareto) rows.insert(rows.end(), {c.costs[0], -c.accuracy});
    return hypervolume({rows, 2}, std::vector<double>{100, 1}).value();
  };
  EXPECT_GT(volume(found), 0.97 * volume(truth));
  EXPECT_LE(volume(found), volume(truth));
}

TEST(Exhaustive, VisitsDesignsWithInactiveGenesOnce) {
  const DepthSpace space;
  const FunctionSource one([](space::Design) { return 1.0; });
  const Problem problem{
      .space = &space, .accuracy = &one, .costs = {{.name = "x", .source = &one}}};
  const auto strategy = make_exhaustive(space, {.batch = 1000}).value();
  core::ThreadPool pool(1);
  // Each stage: 3^2 + 3^3 + 3^4 ways.
  EXPECT_EQ(run_search(problem, *strategy, pool)->evaluations, 117U * 117U);
}

TEST(Exhaustive, RefusesALargeSpaceWithItsSize) {
  const ToySpace space(30, 5);
  const auto error = make_exhaustive(space).error();
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_NE(error.message.find("10^21.0"), std::string::npos) << error.message;
}

TEST(Listed, GoesThroughTheGivenDesigns) {
  const Toy toy(3, 3);
  space::Population listed(3, 2);
  listed[1][2] = 2;
  const auto strategy = make_listed(listed, 1);
  core::ThreadPool pool(1);
  const auto found = run_search(toy.problem(), *strategy, pool).value();
  EXPECT_EQ(found.evaluations, 2U);
  EXPECT_EQ(found.best->design, (std::vector<space::Choice>{0, 0, 2}));
}

TEST(Search, PassesTheErrorOfASourceOn) {
  class Broken final : public space::Source {
    Status evaluate(space::DesignBatch /*designs*/, std::span<double> /*out*/) const override {
      return fail(ErrorCode::device_failed, "the device is gone");
    }
  };
  const Toy toy(3, 3);
  const Broken broken;
  auto problem = toy.problem();
  problem.costs[0].source = &broken;
  const auto strategy = make_exhaustive(toy.space()).value();
  core::ThreadPool pool(2);
  const auto found = run_search(problem, *strategy, pool);
  EXPECT_EQ(found.error().message, "the device is gone");
}

TEST(Search, WeighsAccuracyAgainstCost) {
  const Toy toy(3, 3);
  core::ThreadPool pool(1);
  const auto best_for = [&](double t) {
    auto problem = toy.problem();
    problem.costs[0].weight = t;
    const auto strategy = make_exhaustive(toy.space()).value();
    return run_search(problem, *strategy, pool, {.scales = {.accuracy = 6, .costs = {6}}})
        ->best->design;
  };
  // Gene 1 is worth (1 - t) 1 - t 3 a step, gene 2 (1 - t) 2 - t 2, gene 3 (1 - t) 3 - t 1.
  using Design = std::vector<space::Choice>;
  EXPECT_EQ(best_for(0.2), (Design{2, 2, 2}));
  EXPECT_EQ(best_for(0.4), (Design{0, 2, 2}));
  EXPECT_EQ(best_for(0.6), (Design{0, 0, 2}));
  EXPECT_EQ(best_for(0.8), (Design{0, 0, 0}));
}

TEST(Scales, OfASmallSpaceAreThoseOfAllDesigns) {
  const Toy toy(1, 3);
  core::ThreadPool pool(1);
  // Latencies 1, 4, 7: the quantiles 0.05 and 0.95 are 1.3 and 6.7.
  EXPECT_NEAR(measure_scales(toy.problem(), pool)->costs[0], 5.4, 1e-12);
}

}  // namespace
}  // namespace fleetfit::search
