#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "fleetfit/search/strategy.h"
#include "search/evolution_options.h"
#include "search/fresh.h"

namespace fleetfit::search {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Where a design stands: its Pareto set, and how lonely it is there.
struct Standing {
  std::uint32_t front = 0;
  double distance = 0;  // to its neighbours in the set, summed over objectives
};

bool stands_before(const Standing& a, const Standing& b) {
  return a.front != b.front ? a.front < b.front : a.distance > b.distance;
}

/// Adds what one objective says of the loneliness of the members of a front.
void add_distances(const PointsView& points, std::size_t objective, std::vector<std::size_t> front,
                   std::vector<Standing>& standings) {
  std::ranges::stable_sort(front, {}, [&](std::size_t i) { return points[i][objective]; });
  const double range = points[front.back()][objective] - points[front.front()][objective];
  standings[front.front()].distance = kInfinity;
  standings[front.back()].distance = kInfinity;
  if (!(range > 0)) return;
  for (std::size_t k = 1; k + 1 < front.size(); ++k) {
    standings[front[k]].distance +=
        (points[front[k + 1]][objective] - points[front[k - 1]][objective]) / range;
  }
}

/// Designs that break limits stand behind all others, each in a set of its own.
void put_behind(std::span<const Score> scores, std::vector<std::size_t> breaking,
                std::vector<Standing>& standings) {
  std::uint32_t next = 0;
  for (const auto& standing : standings) next = std::max(next, standing.front + 1);
  std::ranges::stable_sort(breaking, {}, [&](std::size_t i) { return scores[i].violation; });
  for (const std::size_t i : breaking) standings[i] = {.front = next++};
}

std::vector<Standing> standings_of(std::span<const Score> scores, const PointsView& points) {
  std::vector<std::size_t> keeping;
  std::vector<std::size_t> breaking;
  std::vector<double> rows;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    (scores[i].violation > 0 ? breaking : keeping).push_back(i);
    if (scores[i].violation > 0) continue;
    rows.insert(rows.end(), points[i].begin(), points[i].end());
  }
  std::vector<Standing> standings(scores.size());
  const auto numbers = front_numbers({rows, points.objectives});
  std::vector<std::vector<std::size_t>> fronts;
  for (std::size_t k = 0; k < keeping.size(); ++k) {
    standings[keeping[k]].front = numbers[k];
    if (numbers[k] >= fronts.size()) fronts.resize(numbers[k] + 1);
    fronts[numbers[k]].push_back(keeping[k]);
  }
  for (const auto& front : fronts)
    for (std::size_t o = 0; o < points.objectives; ++o) add_distances(points, o, front, standings);
  put_behind(scores, std::move(breaking), standings);
  return standings;
}

class Nsga2 final : public Strategy {
 public:
  Nsga2(const space::Space& space, core::Random random, const EvolutionOptions& options)
      : space_(space),
        random_(random),
        options_(options),
        fresh_(space),
        members_(space.genes().size()) {}

  void propose(space::Population& designs) override {
    designs.resize(0);
    if (generation_ == 0) {
      fresh_.sample(random_, options_.population, designs);
    } else if (generation_ < options_.generations && standings_.size() > 1) {
      breed(designs);
    }
    ++generation_;
  }

  void tell(const Outcome& outcome) override {
    for (std::size_t i = 0; i < outcome.designs.size(); ++i) members_.add(outcome.designs[i]);
    scores_.insert(scores_.end(), outcome.scores.begin(), outcome.scores.end());
    const auto& rows = outcome.objectives;
    rows_.insert(rows_.end(), rows.values.begin(), rows.values.end());
    select(rows.objectives);
  }

 private:
  void select(std::size_t objectives) {
    const PointsView points{rows_, objectives};
    const auto standings = standings_of(scores_, points);
    std::vector<std::size_t> order(scores_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return stands_before(standings[a], standings[b]);
    });
    order.resize(std::min(order.size(), options_.population));
    space::Population members(members_.genes());
    std::vector<Score> scores;
    std::vector<double> rows;
    standings_.clear();
    for (const std::size_t i : order) {
      members.add(std::as_const(members_)[i]);
      scores.push_back(scores_[i]);
      rows.insert(rows.end(), points[i].begin(), points[i].end());
      standings_.push_back(standings[i]);
    }
    members_ = std::move(members);
    scores_ = std::move(scores);
    rows_ = std::move(rows);
  }

  void breed(space::Population& children) {
    std::vector<space::Choice> child(members_.genes());
    for (std::size_t i = 0; i < options_.population; ++i) {
      const auto& members = std::as_const(members_);
      space_.crossover(random_, members[tournament()], members[tournament()], child);
      space_.mutate(random_, options_.mutation_probability, child);
      if (fresh_.make_fresh(random_, options_.mutation_probability, child)) children.add(child);
    }
  }

  /// The better of two that were drawn.
  std::size_t tournament() {
    const std::size_t a = random_.below(standings_.size());
    const std::size_t b = random_.below(standings_.size());
    return stands_before(standings_[b], standings_[a]) ? b : a;
  }

  const space::Space& space_;
  core::Random random_;
  EvolutionOptions options_;
  Fresh fresh_;
  std::size_t generation_ = 0;
  space::Population members_;
  std::vector<Score> scores_;
  std::vector<double> rows_;
  std::vector<Standing> standings_;
};

}  // namespace

Result<std::unique_ptr<Strategy>> make_nsga2(const space::Space& space, core::Random random,
                                             const EvolutionOptions& options) {
  FLEETFIT_TRY(check(options));
  return std::make_unique<Nsga2>(space, random.split("nsga2"), options);
}

}  // namespace fleetfit::search
