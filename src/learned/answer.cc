#include "fleetfit/learned/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "fleetfit/core/counting.h"
#include "fleetfit/search/search.h"
#include "fleetfit/search/strategy.h"

namespace fleetfit::learned {
namespace {

using space::Choice;
using space::Design;
using space::Population;

/// A design with what is known about it.
struct Rated {
  std::vector<Choice> design;
  Judged judged;
  Fitness fitness;
};

/// Looks at designs on one device for one goal.
class Bench {
 public:
  Bench(const DeviceJudge& judge, const Goal& goal)
      : judge_(judge), goal_(goal), found_(judge.model().space().genes().size()) {}

  const DeviceJudge& judge() const { return judge_; }
  const space::Space& space() const { return judge_.model().space(); }
  std::size_t judged() const { return count_; }

  /// Judges all; gives the best, and the others behind it if they are asked for.
  std::vector<Rated> rate(const Population& designs, std::size_t best) {
    found_judged_.resize(designs.size());
    judge_.judge(designs, found_judged_);
    count_ += designs.size();
    std::vector<Fitness> fits;
    fits.reserve(designs.size());
    for (const auto& judged : found_judged_) fits.push_back(fitness(judge_, goal_, judged));
    auto order = core::counting(designs.size());
    const auto count = std::min(best, order.size());
    std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count), {},
                              [&](std::size_t i) { return fits[i]; });
    std::vector<Rated> rated;
    for (const auto i : std::span(order).first(count)) {
      const Design design = designs[i];
      if (!rated.empty() && std::ranges::equal(design, rated.back().design)) continue;
      rated.push_back({.design = {design.begin(), design.end()},
                       .judged = found_judged_[i],
                       .fitness = fits[i]});
    }
    return rated;
  }

  /// Moves to the best of all designs that differ in one gene, as long as that is better.
  void refine(Rated& rated, std::size_t steps) {
    for (std::size_t step = 0; step < steps; ++step) {
      add_neighbours(rated.design);
      if (found_.size() == 0) return;
      auto best = rate(found_, 1);
      if (!(best.front().fitness < rated.fitness)) return;
      rated = std::move(best.front());
    }
  }

 private:
  void add_neighbours(Design design) {
    found_.resize(0);
    std::vector<Choice> changed(design.begin(), design.end());
    const auto genes = space().genes();
    for (std::size_t gene = 0; gene < genes.size(); ++gene) {
      if (!space().is_active(design, gene)) continue;
      for (std::size_t choice = 0; choice < genes[gene].choices.size(); ++choice) {
        if (choice == design[gene]) continue;
        std::ranges::copy(design, changed.begin());
        changed[gene] = static_cast<Choice>(choice);
        space().make_canonical(changed);
        found_.add(changed);
      }
    }
  }

  const DeviceJudge& judge_;
  const Goal& goal_;
  Population found_;
  std::vector<Judged> found_judged_;
  std::size_t count_ = 0;
};

void propose_all(const DeviceJudge& judge, const Goal& goal, std::size_t beam,
                 Population& designs) {
  const auto inputs = optimizer_inputs(judge, goal);
  for (const auto& optimizer : judge.model().parts().optimizers)
    optimizer.propose(judge.model().space(), inputs, beam, designs);
}

/// Halves the range of a common weight of all costs until what is proposed for it just keeps the
/// limits; all proposals on the way are candidates.
void propose_by_weights(const DeviceJudge& judge, const Goal& limits, std::size_t steps,
                        Population& designs) {
  double low = std::log(1e-2);
  double high = std::log(30.0);
  for (std::size_t step = 0; step < steps; ++step) {
    const double middle = (low + high) / 2;
    Goal weighted;
    for (const double limit : limits.limits)
      weighted.weights.push_back(std::isfinite(limit) ? std::exp(middle) : 0);
    const std::size_t before = designs.size();
    propose_all(judge, weighted, 1, designs);
    const auto proposed = designs.batch().part(before, designs.size() - before);
    if (proposed.empty()) return;
    std::vector<Judged> judged(proposed.size());
    judge.judge(proposed, judged);
    double violation = INFINITY;
    for (const auto& one : judged)
      violation = std::min(violation, fitness(judge, limits, one).violation);
    (violation > 0 ? low : high) = middle;
  }
}

std::vector<Doubt> doubts_of(const DeviceJudge& judge, const Rated& rated) {
  constexpr double kFar = 3;   // times as far as usual
  constexpr double kWide = 5;  // times as much spread as usual
  std::vector<Doubt> doubts;
  const auto& parts = judge.model().parts();
  if (judge.device().distance > kFar * parts.device.parts().usual_distance)
    doubts.push_back(Doubt::far_device);
  for (std::size_t cost = 0; cost < parts.costs.size(); ++cost) {
    if (rated.judged.spread[cost] <= kWide * parts.costs[cost].usual_spread) continue;
    doubts.push_back(Doubt::wide_spread);
    break;
  }
  if (rated.fitness.violation > 0) doubts.push_back(Doubt::over_limit);
  if (judge.device().missing > 0) doubts.push_back(Doubt::filled_in);
  return doubts;
}

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

core::Names names_of(Doubt) {
  static constexpr core::Name kAll[] = {{Doubt::far_device, "far_device"},
                                        {Doubt::wide_spread, "wide_spread"},
                                        {Doubt::over_limit, "over_limit"},
                                        {Doubt::filled_in, "filled_in"}};
  return {.what = "doubt", .all = kAll};
}

namespace {

/// Of breaking the limit of one cost.
double risk_of(const DeviceJudge& judge, const Goal& goal, const Judged& judged, std::size_t cost) {
  if (!goal.weights.empty() || !std::isfinite(goal.limits[cost])) return 0;
  return judge.risk(judged, cost, std::log(goal.limits[cost]));
}

Answer answer_of(const DeviceJudge& judge, const Goal& goal, const Rated& rated) {
  Answer result{.design = rated.design,
                .accuracy = rated.judged.accuracy,
                .accuracy_spread = rated.judged.accuracy_spread,
                .keeps_limits = rated.fitness.violation <= 0,
                .doubts = doubts_of(judge, rated)};
  for (std::size_t cost = 0; cost < judge.model().parts().costs.size(); ++cost) {
    result.costs.push_back({.value = std::exp(rated.judged.log_cost[cost]),
                            .safe = std::exp(judge.safe(rated.judged, cost)),
                            .risk = risk_of(judge, goal, rated.judged, cost),
                            .spread = rated.judged.spread[cost]});
  }
  return result;
}

}  // namespace

Answer answer(const DeviceJudge& judge, const Goal& goal, const AnswerOptions& options) {
  Bench bench(judge, goal);
  Population proposed(judge.model().space().genes().size());
  propose_all(judge, goal, options.beam, proposed);
  if (goal.weights.empty()) propose_by_weights(judge, goal, options.weight_steps, proposed);
  if (proposed.size() == 0) proposed.resize(1);  // without networks: from the first design on
  auto rated = bench.rate(proposed, options.starts);
  for (auto& one : rated) bench.refine(one, options.refinements);
  const auto best = std::ranges::min_element(rated, {}, &Rated::fitness);
  auto result = answer_of(judge, goal, *best);
  result.judged = bench.judged();
  return result;
}

Answer judged_answer(const DeviceJudge& judge, const Goal& goal, Design design) {
  Population one(design.size());
  one.add(design);
  Bench bench(judge, goal);
  auto result = answer_of(judge, goal, bench.rate(one, 1).front());
  result.judged = 1;
  return result;
}

Result<Answer> sure_answer(const DeviceJudge& judge, const Goal& goal, core::ThreadPool& pool,
                           std::uint64_t seed, const AnswerOptions& options) {
  auto quick = answer(judge, goal, options);
  const auto is_serious = [](Doubt doubt) { return doubt != Doubt::filled_in; };
  if (std::ranges::none_of(quick.doubts, is_serious)) return quick;
  FLEETFIT_ASSIGN(auto searched, searched_answer(judge, goal, pool, seed));
  searched.judged += quick.judged;
  for (const auto doubt : quick.doubts) {
    if (std::ranges::count(searched.doubts, doubt) == 0 && doubt != Doubt::over_limit)
      searched.doubts.push_back(doubt);
  }
  return searched;
}

Result<std::vector<double>> feature_row(const DeviceInputs& inputs, const DeviceFeatures& features,
                                        std::size_t device) {
  std::vector<double> row;
  const auto values = features.row(device);
  for (const auto& wanted : inputs.parts().columns) {
    const auto found = std::ranges::find(features.columns, wanted.name, &FeatureColumn::text);
    if (found == features.columns.end()) {
      return refuse(fmt::format("{}: there is no column {}, which the model needs", features.name,
                                wanted.name));
    }
    row.push_back(values[static_cast<std::size_t>(found - features.columns.begin())]);
  }
  return row;
}

Result<DeviceVector> device_of(const Model& model, const DeviceFeatures& features,
                               std::size_t device) {
  FLEETFIT_ASSIGN(const auto row, feature_row(model.parts().device, features, device));
  return core::within(fmt::format("{}: device {}", features.name, features.devices[device]),
                      model.parts().device.read(row));
}

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
