#include <algorithm>
#include <cmath>

#include "fleetfit/learned/answer.h"
#include "fleetfit/search/search.h"
#include "fleetfit/search/strategy.h"

namespace fleetfit::learned {
namespace {

/// Accuracy, and what counts against limits or weights, as sources of a search.
class JudgedSource final : public space::Source {
 public:
  using Number = double (*)(const DeviceJudge& judge, const Goal& goal, const Judged& judged);

  JudgedSource(const DeviceJudge& judge, const Goal& goal, Number number)
      : judge_(judge), goal_(goal), number_(number) {}

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    std::vector<Judged> judged(designs.size());
    judge_.judge(designs, judged);
    for (std::size_t i = 0; i < judged.size(); ++i) out[i] = number_(judge_, goal_, judged[i]);
    return {};
  }

 private:
  const DeviceJudge& judge_;
  const Goal& goal_;
  Number number_;
};

double gain(const DeviceJudge& judge, const Goal& goal, const Judged& judged) {
  return -fitness(judge, goal, judged).loss;
}

/// 1 is just within the limits.
double excess(const DeviceJudge& judge, const Goal& goal, const Judged& judged) {
  return std::exp(fitness(judge, goal, judged).violation);
}

Result<std::unique_ptr<search::Strategy>> strategy_for(const space::Space& space,
                                                       std::uint64_t seed) {
  constexpr std::uint64_t kSmall = 200'000;
  const auto size = space.size().exact();
  if (size && *size <= kSmall) return search::make_exhaustive(space);
  return search::make_evolution(space, core::Random(seed), {.population = 300, .generations = 30});
}

}  // namespace

Result<Answer> searched_answer(const DeviceJudge& judge, const Goal& goal, core::ThreadPool& pool,
                               std::uint64_t seed) {
  const JudgedSource gains(judge, goal, &gain);
  const JudgedSource excesses(judge, goal, &excess);
  const auto& space = judge.model().space();
  FLEETFIT_ASSIGN(auto strategy, strategy_for(space, seed));
  const search::Problem problem{.space = &space,
                                .accuracy = &gains,
                                .costs = {{.name = "excess", .source = &excesses, .limit = 1.0}}};
  FLEETFIT_ASSIGN(const auto found, search::run_search(problem, *strategy, pool));
  const auto& best = found.best ? *found.best : *found.nearest;
  auto result = judged_answer(judge, goal, best.design);
  result.by_search = true;
  result.judged = found.evaluations;
  return result;
}

}  // namespace fleetfit::learned
