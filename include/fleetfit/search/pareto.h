#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fleetfit/core/result.h"

/// What is best when several things count at once.
namespace fleetfit::search {

/// Points, row by row, with a number for each objective; smaller is better in all of them. Borrows
/// the numbers.
struct PointsView {
  std::span<const double> values = {};
  std::size_t objectives = 1;

  std::size_t size() const { return values.size() / objectives; }
  std::span<const double> operator[](std::size_t row) const {
    return values.subspan(row * objectives, objectives);
  }
};

/// Whether `a` is nowhere worse than `b` and better somewhere. A NaN is neither.
bool dominates(std::span<const double> a, std::span<const double> b);

/// The points that none dominates, in the order of their first objective (then the second, …). Of
/// equal points the first; a point with a NaN is never one of them. O(n log n) for one or two
/// objectives, else n times the size of the set.
std::vector<std::size_t> pareto_set(const PointsView& points);

/// For each point, which Pareto set it is in: 0 for the first, 1 for that of the others without
/// the first, and so on. Equal points have equal numbers; those with a NaN come after all others.
std::vector<std::uint32_t> front_numbers(const PointsView& points);

/// Which points of one front are better than the others: their places, best first.
using FrontOrder = std::function<std::vector<std::size_t>(const PointsView& front)>;

/// By Deb's crowding distance: how far the neighbours of a point are apart, in units of the front's
/// range, summed over the objectives. The ends of each objective come first.
std::vector<std::size_t> loneliest_first(const PointsView& front);

/// All points, best first: front by front, each in its order; then those that break limits, the
/// least first. `violations` are 0 for points that break none. Equals stay as they are given.
std::vector<std::size_t> best_first(const PointsView& points, std::span<const double> violations,
                                    const FrontOrder& order = loneliest_first);

/// The measure of what the points dominate, up to the reference point: an area for two objectives,
/// a volume for three. Points that are not better than the reference everywhere count for nothing.
/// Exact. Fails with `unsupported` for another number of objectives, and with `invalid_input` if
/// the reference has not as many, or a number is not finite.
Result<double> hypervolume(const PointsView& points, std::span<const double> reference);

/// The Pareto set of points that come in batches, without keeping the others.
class ParetoArchive {
 public:
  explicit ParetoArchive(std::size_t objectives) : objectives_(objectives) {}

  /// `first` is the number of the first of these points; the others follow.
  void add(const PointsView& points, std::size_t first);

  /// Gives the points that are left the numbers of their places, 0, 1, 2, …
  void renumber();

  /// Numbers of the points that are left, in the order of `pareto_set`.
  std::span<const std::size_t> numbers() const { return numbers_; }
  PointsView points() const { return {values_, objectives_}; }

 private:
  std::size_t objectives_;
  std::vector<double> values_;
  std::vector<std::size_t> numbers_;
};

}  // namespace fleetfit::search
