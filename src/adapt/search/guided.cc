#include "fleetfit/adapt/guided.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "adapt/branch_paths.h"
#include "adapt/search/quality_model.h"
#include "fleetfit/space/design_index.h"

namespace fleetfit::adapt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// How many subnets the model looks at for each one that is evaluated, and how many of the best are
// mutated for them.
constexpr std::size_t kLooks = 30;
constexpr std::size_t kElite = 8;
// Of how many standard deviations a subnet that the model is not sure of is given the benefit.
constexpr double kBenefit = 1;

/// What subnets cost beside others that begin alike.
class PrefixCosts {
 public:
  explicit PrefixCosts(const LatencyTable& table) : table_(table) {}

  void add(Path path) {
    for (; !path.empty(); path.pop_back()) known_.insert(path);
  }

  /// Latency of the branches that have to be run for this subnet alone.
  double new_ms(Path path) const {
    double ms = 0;
    for (; !path.empty() && !known_.contains(path); path.pop_back()) {
      const auto& [model, block, branch] = path.back();
      ms += table_.ms[model][block][branch];
    }
    return ms;
  }

 private:
  const LatencyTable& table_;
  std::set<Path> known_;
};

/// A subnet that may be worth looking at.
struct Prospect {
  std::vector<space::Choice> design = {};
  double promise = 0;
};

class Guided final : public search::Strategy {
 public:
  Guided(const SubnetProblem& problem, core::Random random, const GuidedOptions& options)
      : problem_(problem),
        random_(random),
        options_(options),
        nearby_(problem.space, problem.table, window_below(problem, options.window)),
        seen_(problem.space) {}

  void propose(space::Population& designs) override {
    designs.resize(0);
    if (scored_.empty()) {
      propose_first(designs);
    } else if (round_ < options_.most_rounds && idle_ < options_.patience) {
      ++round_;
      propose_best(designs);
    }
    // Two looks at other latencies: the first shows the model what it did not know of them.
    constexpr std::size_t kLevelRounds = 2;
    while (designs.size() == 0 && level_round_ < kLevelRounds) {
      ++level_round_;
      propose_levels(designs);
    }
  }

  void tell(const search::Outcome& outcome) override {
    bool better = false;
    for (std::size_t i = 0; i < outcome.designs.size(); ++i) {
      const double ms = outcome.objectives[i][0];
      const double score = -outcome.objectives[i][1];
      if (!std::isfinite(score)) continue;
      scored_.push_back(
          {.path = problem_.space.path(outcome.designs[i]), .ms = ms, .score = score});
      if (ms > problem_.budget_ms || score <= best_) continue;
      best_ = score;
      better = true;
    }
    idle_ = better ? 0 : idle_ + 1;
  }

 private:
  void add_if_new(space::Design design, space::Population& designs) {
    if (seen_.add(design)) designs.add(design);
  }

  /// Originals and the quickest show how much there is to lose; the others are near the budget.
  /// Each of them is, of some that were drawn, the one that shows the most for its work: it has
  /// branches that were taken seldom, and begins like one that is evaluated anyway.
  void propose_first(space::Population& designs) {
    for (std::size_t m = 0; m < problem_.models.size(); ++m)
      add_if_new(problem_.space.original(m), designs);
    add_if_new(design_of(problem_.space, fastest_subnet(problem_.models, problem_.table)), designs);
    PrefixCosts costs(problem_.table);
    for (std::size_t i = 0; i < designs.size(); ++i)
      costs.add(problem_.space.path(std::as_const(designs)[i]));
    auto taken = zeros(problem_.models);
    for (std::size_t i = 0; i < options_.first; ++i) {
      const auto drawn = most_informative(designs, taken, costs);
      if (drawn.empty()) continue;
      add_if_new(drawn, designs);
      const auto path = problem_.space.path(drawn);
      costs.add(path);
      for (const auto& [model, block, branch] : path) taken[model][block][branch] += 1;
    }
  }

  std::vector<space::Choice> most_informative(const space::Population& designs,
                                              const BranchNumbers& taken,
                                              const PrefixCosts& costs) {
    constexpr int kDraws = 16;
    std::vector<space::Choice> best;
    double most = -kInfinity;
    for (int draw = 0; draw < kDraws; ++draw) {
      const auto drawn = draw % 2 == 0 ? draw_like(designs) : draw_near();
      if (drawn.empty() || seen_.find(drawn)) continue;
      const auto path = problem_.space.path(drawn);
      double news = 0;
      for (const auto& [model, block, branch] : path) news += 1 / (1 + taken[model][block][branch]);
      const double value = news / (costs.new_ms(path) + 0.1 * problem_.budget_ms);
      if (value <= most) continue;
      most = value;
      best = drawn;
    }
    return best;
  }

  /// A subnet near the budget. Empty if none was found.
  std::vector<space::Choice> draw_near() {
    std::vector<space::Choice> drawn(problem_.space.genes().size());
    if (!nearby_.init(random_, drawn)) drawn.clear();
    return drawn;
  }

  /// One that begins like another.
  std::vector<space::Choice> draw_like(const space::Population& designs) {
    const auto like = designs[random_.below(designs.size())];
    std::vector<space::Choice> drawn(like.begin(), like.end());
    if (!nearby_.init_rest(random_, random_.below(drawn.size()), drawn)) drawn.clear();
    return drawn;
  }

  /// What the model thinks best within the budget, and mutants of the best so far.
  void propose_best(space::Population& designs) {
    const QualityModel model(problem_, scored_);
    std::vector<Prospect> prospects;
    space::DesignIndex listed(problem_.space);
    const auto list = [&](const std::vector<space::Choice>& design) {
      if (seen_.find(design) || !listed.add(design)) return;
      const auto predicted = model.predict(problem_.space.path(design));
      prospects.push_back({design, predicted.mean + kBenefit * std::sqrt(predicted.variance)});
    };
    const std::size_t looks = kLooks * options_.batch / 2;
    auto paths = frontier(problem_.models, problem_.table, model.values());
    std::erase_if(paths, [&](const auto& path) { return path.ms > problem_.budget_ms; });
    std::ranges::stable_sort(paths, std::ranges::greater(), &ValuedPath::value);
    for (const auto& valued : paths) {
      if (prospects.size() >= looks) break;
      list(design_of(problem_.space, valued.path));
    }
    for (std::size_t i = 0; i < looks; ++i)
      if (auto mutant = mutated_elite(); !mutant.empty()) list(mutant);
    std::ranges::stable_sort(prospects, std::ranges::greater(), &Prospect::promise);
    take_cheaply(prospects, designs);
  }

  /// The most promising ones, and of twice as many as are wanted those that begin most like what is
  /// evaluated anyway.
  void take_cheaply(std::vector<Prospect>& prospects, space::Population& designs) {
    prospects.resize(std::min(prospects.size(), 2 * options_.batch));
    PrefixCosts costs(problem_.table);
    while (!prospects.empty() && designs.size() < options_.batch) {
      auto next = prospects.begin();
      if (designs.size() >= options_.batch / 3) {
        next = std::ranges::min_element(prospects, {}, [&](const Prospect& prospect) {
          return costs.new_ms(problem_.space.path(prospect.design));
        });
      }
      costs.add(problem_.space.path(next->design));
      add_if_new(next->design, designs);
      prospects.erase(next);
    }
  }

  std::vector<space::Choice> mutated_elite() {
    const auto better = [&](const Scored& a, const Scored& b) {
      const auto fits = [&](const Scored& s) { return s.ms <= problem_.budget_ms; };
      return fits(a) != fits(b) ? fits(a) : a.score > b.score;
    };
    if (elite_of_ != scored_.size()) {
      elite_ = scored_;
      std::ranges::stable_sort(elite_, better);
      elite_.resize(std::min(elite_.size(), kElite));
      elite_of_ = scored_.size();
    }
    auto mutant = design_of(problem_.space, elite_[random_.below(elite_.size())].path);
    if (!nearby_.mutate(random_, mutant)) return {};
    return mutant;
  }

  /// For each level the subnet that the model thinks best.
  void propose_levels(space::Population& designs) {
    if (options_.levels == 0) return;
    const QualityModel model(problem_, scored_);
    const auto paths = frontier(problem_.models, problem_.table, model.values());
    const double low = paths.front().ms;
    const double high = paths.back().ms;
    for (std::size_t level = 0; level < options_.levels; ++level) {
      const auto share = static_cast<double>(level + 1) / static_cast<double>(options_.levels);
      // Finer steps where subnets are quick.
      const double limit = low * std::pow(high / low, share) * (1 + 1e-9);
      const auto better = [&](const ValuedPath& a, const ValuedPath& b) {
        return a.ms <= limit && (b.ms > limit || a.value > b.value);
      };
      const auto best = std::ranges::min_element(paths, better);
      add_if_new(design_of(problem_.space, best->path), designs);
    }
  }

  const SubnetProblem problem_;
  core::Random random_;
  GuidedOptions options_;
  Nearby nearby_;
  space::DesignIndex seen_;
  std::vector<Scored> scored_;
  std::vector<Scored> elite_;
  std::size_t elite_of_ = 0;  // how many were scored when the elite was chosen
  double best_ = -kInfinity;
  std::size_t round_ = 0;
  std::size_t idle_ = 0;
  std::size_t level_round_ = 0;
};

}  // namespace

std::unique_ptr<search::Strategy> make_guided(const SubnetProblem& problem, core::Random random,
                                              const GuidedOptions& options) {
  return std::make_unique<Guided>(problem, random.split("guided"), options);
}

}  // namespace fleetfit::adapt
