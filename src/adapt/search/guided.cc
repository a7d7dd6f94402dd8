#include "fleetfit/adapt/guided.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "adapt/branch_paths.h"
#include "adapt/search/linear_posterior.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/space/design_index.h"

namespace fleetfit::adapt {
namespace {

using elastic::BranchId;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// By how much branches differ from what their latency says, and how much scores scatter, both in
// units of the spread of all scores.
constexpr double kDifferences[] = {0.05, 0.2, 0.6};
constexpr double kNoises[] = {0.01, 0.1, 0.3, 0.6};
// How far from the budget, as its share, a subnet counts for half.
constexpr double kReach = 0.25;
// How many subnets the model looks at for each one that is evaluated, and how many of the best are
// mutated for them.
constexpr std::size_t kLooks = 30;
constexpr std::size_t kElite = 8;
// Of how many standard deviations a subnet that the model is not sure of is given the benefit.
constexpr double kBenefit = 1;

/// A subnet with its score.
struct Scored {
  Path path = {};
  double ms = 0;
  double score = 0;
};

/// What branches lose against the original, learned from whole subnets: the score of a subnet is
/// that of its model, less something for the time that it saves, and less what each branch loses
/// more or less than that. Subnets far from the budget count for less, as losses add up only among
/// subnets that are alike.
class QualityModel {
 public:
  /// `scored` is not empty. How strongly branches differ and how much scores scatter is chosen by
  /// how likely it makes the scores.
  QualityModel(const SubnetProblem& problem, std::span<const Scored> scored);

  /// For `frontier`.
  PathValues values() const;

  LinearPrediction predict(const Path& path) const { return posterior_->predict(row_of(path)); }

 private:
  FeatureRow row_of(const Path& path) const;
  double saved_share(const BranchId& id) const;
  std::size_t index_of(const BranchId& id) const {
    return first_index_[id.model][id.block] + id.branch;
  }
  LinearPrior prior_of(double mean, double spread, double difference) const;

  const SubnetProblem& problem_;
  std::vector<std::vector<std::size_t>> first_index_;  // of each block's features
  std::size_t features_ = 0;
  std::optional<LinearPosterior> posterior_;
};

QualityModel::QualityModel(const SubnetProblem& problem, std::span<const Scored> scored)
    : problem_(problem), features_(2 * problem.models.size()) {
  for (const auto& model : problem.models) {
    auto& blocks = first_index_.emplace_back();
    for (const auto& block : model.blocks) {
      blocks.push_back(features_);
      features_ += block.branches.size();
    }
  }
  std::vector<FeatureRow> rows;
  std::vector<double> scores;
  std::vector<double> distrust;
  for (const auto& subnet : scored) {
    rows.push_back(row_of(subnet.path));
    scores.push_back(subnet.score);
    distrust.push_back(1 +
                       std::pow((subnet.ms - problem.budget_ms) / (kReach * problem.budget_ms), 2));
  }
  const double mean = core::mean(scores).value_or(0);
  const double spread = std::max(core::stddev(scores).value_or(0), 1e-6);
  double best = -std::numeric_limits<double>::infinity();
  for (const double difference : kDifferences) {
    for (const double noise : kNoises) {
      auto variances = distrust;
      for (double& variance : variances) variance *= std::pow(noise * spread, 2);
      LinearPosterior posterior(prior_of(mean, spread, difference), rows, scores, variances);
      if (!(posterior.log_evidence() > best)) continue;
      best = posterior.log_evidence();
      posterior_.emplace(std::move(posterior));
    }
  }
}

/// Features: what each model is worth, what its time is worth, and each branch but the originals.
LinearPrior QualityModel::prior_of(double mean, double spread, double difference) const {
  LinearPrior prior{.mean = std::vector<double>(features_),
                    .variance = std::vector<double>(features_)};
  const std::size_t models = problem_.models.size();
  for (std::size_t m = 0; m < models; ++m) {
    prior.mean[2 * m] = mean;
    prior.variance[2 * m] = std::pow(10 * spread, 2);
    prior.variance[2 * m + 1] = std::pow(10 * spread, 2);
    for (std::size_t b = 0; b < first_index_[m].size(); ++b)
      for (std::size_t i = 1; i < problem_.models[m].blocks[b].branches.size(); ++i)
        prior.variance[first_index_[m][b] + i] = std::pow(difference * spread, 2);
  }
  return prior;
}

double QualityModel::saved_share(const BranchId& id) const {
  const auto& ms = problem_.table.ms[id.model];
  double original = 0;
  double replaced = 0;
  const std::size_t end =
      id.block + problem_.models[id.model].blocks[id.block].branches[id.branch].span;
  for (std::size_t b = 0; b < ms.size(); ++b) {
    original += ms[b].front();
    if (b >= id.block && b < end) replaced += ms[b].front();
  }
  return original > 0 ? (replaced - ms[id.block][id.branch]) / original : 0;
}

FeatureRow QualityModel::row_of(const Path& path) const {
  const std::size_t model = path.front().model;
  FeatureRow row = {{.index = 2 * model}, {.index = 2 * model + 1, .value = 0}};
  for (const auto& id : path) {
    row[1].value += saved_share(id);
    if (id.branch > 0) row.push_back({.index = index_of(id)});
  }
  return row;
}

PathValues QualityModel::values() const {
  PathValues values{.branches = zeros(problem_.models)};
  const auto weights = posterior_->weights();
  for (std::size_t m = 0; m < problem_.models.size(); ++m) {
    values.offsets.push_back(weights[2 * m]);
    for (std::size_t b = 0; b < values.branches[m].size(); ++b)
      for (std::size_t i = 1; i < values.branches[m][b].size(); ++i) {
        const BranchId id{.model = m, .block = b, .branch = i};
        values.branches[m][b][i] = weights[index_of(id)] + weights[2 * m + 1] * saved_share(id);
      }
  }
  return values;
}

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
