#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "fleetfit/adapt/evaluator.h"
#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/search/strategy.h"
#include "fleetfit/space/design.h"

/// Searches for subnets that know the latencies before they evaluate anything: the best subnets are
/// near the budget, and only those near it are looked at.
namespace fleetfit::adapt {

/// Latencies that are near enough.
struct LatencyWindow {
  double low_ms = 0;
  double high_ms = 0;

  bool holds(double ms) const { return ms >= low_ms && ms <= high_ms; }
  double distance(double ms) const;  ///< 0 inside
};

/// Random subnets within a window. Borrows space and table. Safe to use from many threads.
class Nearby {
 public:
  Nearby(const elastic::SubnetSpace& space, const LatencyTable& table, const LatencyWindow& window)
      : space_(space), table_(table), window_(window) {}

  double latency_ms(space::Design design) const { return table_.subnet_ms(space_.path(design)); }

  /// A random subnet in the window. False if none was found; the design is then as near as it got.
  bool init(core::Random& random, std::span<space::Choice> design) const;

  /// The same, keeping the choices of the genes before `first_gene`.
  bool init_rest(core::Random& random, std::size_t first_gene,
                 std::span<space::Choice> design) const;

  /// Replaces a branch by another. If the subnet is then out of the window, further branches are
  /// replaced by those that bring it back the most. False as above.
  bool mutate(core::Random& random, std::span<space::Choice> design) const;

 private:
  using Movable = std::function<bool(std::size_t gene)>;
  bool bring_back(core::Random& random, const Movable& movable,
                  std::span<space::Choice> design) const;
  std::vector<space::Choice> nearest_change(core::Random& random, const Movable& movable,
                                            space::Design design) const;

  const elastic::SubnetSpace& space_;
  const LatencyTable& table_;
  LatencyWindow window_;
};

/// What searches near a budget know. Borrows everything.
struct SubnetProblem {
  const std::vector<elastic::Supernet>& models;
  const elastic::SubnetSpace& space;
  const LatencyTable& table;
  double budget_ms = 0;
};

/// The window below the budget, or around it. If all subnets are quicker than the budget, that of
/// the slowest.
LatencyWindow window_below(const SubnetProblem& problem, double share);
LatencyWindow window_around(const SubnetProblem& problem, double share);

/// AdaptiveNet's way through a space, for `search::make_evolution` and `search::make_annealing`:
/// subnets in a window around the budget, children that are mutated parents. `window` is half of
/// its width, as a share of the budget. Borrows what the problem borrows.
std::unique_ptr<const search::Moves> nearby_moves(const SubnetProblem& problem,
                                                  double window = 0.1);

struct GuidedOptions {
  std::size_t first = 40;        ///< subnets near the budget to begin with
  std::size_t batch = 12;        ///< subnets of each round
  std::size_t most_rounds = 12;  ///< after the first
  std::size_t patience = 3;      ///< rounds without progress that end the search
  double window = 0.1;           ///< half of the window's width, as a share of the budget
  std::size_t levels = 12;       ///< of latency, for which good subnets are found, too; 0: none
};

/// Learns from the subnets that were evaluated what each branch loses, works out which subnets of
/// all are then the best within the budget, and evaluates those, and mutants near the budget of
/// which it is not sure. At the end it does the same for other levels of latency.
std::unique_ptr<search::Strategy> make_guided(const SubnetProblem& problem, core::Random random,
                                              const GuidedOptions& options = {});

/// A subnet that a search has looked at.
struct SearchedSubnet {
  std::vector<space::Choice> design = {};
  double latency_ms = 0;  ///< by the table
  Evaluation evaluation = {};
};

struct SearchedSubnets {
  std::vector<SearchedSubnet> subnets = {};
  bool stopped = false;  ///< before the strategy had come to its end
};

struct SearchSubnetsOptions {
  std::stop_token stop = {};
  /// Sees all subnets so far after each round.
  std::function<void(const SearchedSubnets&)> observe = {};
};

/// Lets the strategy propose, evaluates, reports to it, until it is at its end. Fails as the
/// quality does; when stopped, gives what was found so far.
Result<SearchedSubnets> search_subnets(const SubnetProblem& problem, SubnetQuality& quality,
                                       search::Strategy& strategy,
                                       const SearchSubnetsOptions& options = {});

struct FinalistOptions {
  std::size_t near = 16;    ///< within the budget, those with the best scores
  std::size_t levels = 14;  ///< most of the Pareto set, evenly spread
};

/// Numbers of subnets that deserve a closer look.
struct Finalists {
  /// The best within the budget; as the table may be wrong, also the best just beyond it and the
  /// best somewhat below.
  std::vector<std::size_t> near = {};
  /// The best at all latencies, from the quickest to the most accurate.
  std::vector<std::size_t> levels = {};
};

Finalists finalists(const SearchedSubnets& searched, double budget_ms,
                    const FinalistOptions& options = {});

}  // namespace fleetfit::adapt
