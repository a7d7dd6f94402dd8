#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/search/pareto.h"
#include "fleetfit/space/source.h"
#include "fleetfit/space/space.h"

/// What is searched for.
namespace fleetfit::search {

/// Something that a design costs: latency, energy, memory. Borrows its source.
struct Cost {
  std::string name = {};  ///< with its unit: "latency_ms"
  const space::Source* source = nullptr;
  double limit = std::numeric_limits<double>::infinity();  ///< designs should not exceed it
  double weight = 0;  ///< t of this cost, from 0; those of all costs add up to at most 1
};

/// The most accurate design whose costs keep all limits or, with weights t, the one that minimizes
///   -(1 - sum of t) * accuracy / its scale + sum of t * cost / its scale.
/// Accuracy and costs have different units and spreads; `Scales` makes one t mean much the same for
/// all of them. Borrows everything.
struct Problem {
  const space::Space* space = nullptr;
  const space::Source* accuracy = nullptr;
  std::vector<Cost> costs = {};  ///< at least one

  /// The costs, and the accuracy.
  std::size_t objectives() const { return costs.size() + 1; }
  bool is_weighted() const;
};

/// Fails with `invalid_input`, naming the cost, on a limit that is not positive and on weights that
/// are negative or add up to more than 1.
Status check(const Problem& problem);

/// A design with its numbers.
struct Candidate {
  std::vector<space::Choice> design = {};
  double accuracy = 0;
  std::vector<double> costs = {};

  bool operator==(const Candidate&) const = default;
};

/// Leaves the candidates that none of the others dominates (less or equal in all costs, and
/// accuracy not lower), in the order of their first cost. Of equal ones the first stays.
void drop_dominated(std::vector<Candidate>& candidates);

/// By what accuracy and costs are divided when they are weighed against each other: the range of
/// the middle nine tenths of random designs.
struct Scales {
  double accuracy = 1;
  std::vector<double> costs = {};
};

/// How good a design is; smaller is better. One that breaks a limit is worse than all that do not.
struct Score {
  double violation = 0;  ///< sum over limits of the share by which they are exceeded
  double loss = 0;       ///< minus the accuracy, or the weighted sum

  auto operator<=>(const Score&) const = default;
};

/// Numbers of designs. A row has the costs, then minus the accuracy: smaller is better everywhere.
/// NaN where a source knows nothing.
struct Evaluated {
  std::vector<double> rows = {};
  std::size_t objectives = 1;

  std::size_t size() const { return rows.size() / objectives; }
  PointsView points() const { return {rows, objectives}; }
};

/// Asks the sources, on all workers of the pool. Fails as they do.
Result<Evaluated> evaluate(const Problem& problem, space::DesignBatch designs,
                           core::ThreadPool& pool);

/// From rows of designs that stand for the space; those with a NaN do not count. A column without
/// spread has the scale 1.
Scales scales_of(const Evaluated& evaluated);

/// Infinite for a row with a NaN.
Score score(const Problem& problem, const Scales& scales, std::span<const double> row);

Candidate candidate_of(space::Design design, std::span<const double> row);

}  // namespace fleetfit::search
