#include "fleetfit/search/pareto.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

namespace fleetfit::search {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::size_t> places(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

bool has_nan(std::span<const double> point) {
  return std::ranges::any_of(point, [](double v) { return std::isnan(v); });
}

/// Points without a NaN, ordered by their objectives: whatever dominates a point stands before it.
std::vector<std::size_t> in_order(const PointsView& points) {
  std::vector<std::size_t> order;
  order.reserve(points.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    if (!has_nan(points[i])) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::ranges::lexicographical_compare(points[a], points[b]);
  });
  return order;
}

/// Nowhere worse, which is enough to make an equal or later point superfluous.
bool covers(std::span<const double> a, std::span<const double> b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(a[i] <= b[i])) return false;
  return true;
}

std::vector<std::size_t> set_of_two(const PointsView& points) {
  std::vector<std::size_t> set;
  double least = kInfinity;
  for (const std::size_t i : in_order(points)) {
    const double last = points[i].back();
    if (!set.empty() && !(last < least)) continue;
    set.push_back(i);
    least = last;
    if (points.objectives == 1) break;
  }
  return set;
}

/// Fronts that points are put into in order, each into the first that does not dominate it.
class Fronts {
 public:
  explicit Fronts(const PointsView& points) : points_(points) {}

  std::uint32_t put(std::size_t point) {
    const auto found = std::ranges::partition_point(
        fronts_, [&](const auto& front) { return holds_better(front, point); });
    const auto number = static_cast<std::uint32_t>(found - fronts_.begin());
    if (found == fronts_.end()) fronts_.emplace_back();
    fronts_[number].push_back(point);
    return number;
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(fronts_.size()); }

 private:
  // With two objectives the last point of a front has the least second one, so it alone decides.
  bool holds_better(const std::vector<std::size_t>& front, std::size_t point) const {
    if (points_.objectives <= 2) return dominates(points_[front.back()], points_[point]);
    return std::any_of(front.rbegin(), front.rend(), [&](std::size_t other) {
      return dominates(points_[other], points_[point]);
    });
  }

  const PointsView& points_;
  std::vector<std::vector<std::size_t>> fronts_;
};

double area(const PointsView& points, std::span<const double> reference) {
  double sum = 0;
  double top = reference[1];
  for (const std::size_t i : pareto_set(points)) {
    const auto point = points[i];
    if (point[0] >= reference[0] || point[1] >= top) continue;
    sum += (reference[0] - point[0]) * (top - point[1]);
    top = point[1];
  }
  return sum;
}

/// The area that points of a plane dominate, growing point by point.
class GrowingArea {
 public:
  explicit GrowingArea(std::span<const double> reference) : reference_(reference) {}

  double area() const { return area_; }

  void add(double x, double y) {
    auto next = std::ranges::lower_bound(steps_, x, {}, &Step::x);
    if (next != steps_.begin() && std::prev(next)->y <= y) return;
    if (next != steps_.end() && next->x == x && next->y <= y) return;
    double left = x;
    double top = next == steps_.begin() ? reference_[1] : std::prev(next)->y;
    auto last = next;
    for (; last != steps_.end() && last->y >= y; ++last) {
      area_ += (last->x - left) * (top - y);
      left = last->x;
      top = last->y;
    }
    const double right = last == steps_.end() ? reference_[0] : last->x;
    area_ += (right - left) * (top - y);
    next = steps_.erase(next, last);
    steps_.insert(next, {x, y});
  }

 private:
  struct Step {
    double x;
    double y;
  };

  std::span<const double> reference_;
  std::vector<Step> steps_;  // by x; y falls
  double area_ = 0;
};

double volume(const PointsView& points, std::span<const double> reference) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto p = points[i];
    if (p[0] < reference[0] && p[1] < reference[1] && p[2] < reference[2]) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return points[i][2]; });
  GrowingArea plane(reference);
  double sum = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto point = points[order[k]];
    plane.add(point[0], point[1]);
    const double above = k + 1 < order.size() ? points[order[k + 1]][2] : reference[2];
    sum += plane.area() * (above - point[2]);
  }
  return sum;
}

/// Whether the point is superfluous beside a Pareto set that stands in its order.
bool is_beaten(const PointsView& set, std::span<const double> point) {
  if (set.objectives > 2) {
    for (std::size_t i = 0; i < set.size(); ++i)
      if (covers(set[i], point)) return true;
    return false;
  }
  // The last of those that are not worse in the first objective is the best of them in the second.
  std::size_t low = 0;
  std::size_t high = set.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (set[middle][0] <= point[0]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low > 0 && covers(set[low - 1], point);
}

/// Adds what one objective says of the loneliness of the members of a front.
void add_distances(const PointsView& front, std::size_t objective, std::vector<double>& distances) {
  const auto value = [&](std::size_t i) {
    return std::isnan(front[i][objective]) ? kInfinity : front[i][objective];
  };
  auto order = places(front.size());
  std::ranges::stable_sort(order, {}, value);
  distances[order.front()] = kInfinity;
  distances[order.back()] = kInfinity;
  const double range = value(order.back()) - value(order.front());
  if (!(range > 0) || !std::isfinite(range)) return;
  for (std::size_t k = 1; k + 1 < order.size(); ++k)
    distances[order[k]] += (value(order[k + 1]) - value(order[k - 1])) / range;
}

}  // namespace

bool dominates(std::span<const double> a, std::span<const double> b) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] <= b[i])) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

std::vector<std::size_t> pareto_set(const PointsView& points) {
  if (points.objectives <= 2) return set_of_two(points);
  std::vector<std::size_t> set;
  for (const std::size_t i : in_order(points)) {
    const bool beaten = std::ranges::any_of(
        set, [&](std::size_t other) { return covers(points[other], points[i]); });
    if (!beaten) set.push_back(i);
  }
  return set;
}

std::vector<std::uint32_t> front_numbers(const PointsView& points) {
  Fronts fronts(points);
  std::vector<std::uint32_t> numbers(points.size());
  std::vector<bool> is_placed(points.size());
  for (const std::size_t i : in_order(points)) {
    numbers[i] = fronts.put(i);
    is_placed[i] = true;
  }
  for (std::size_t i = 0; i < points.size(); ++i)
    if (!is_placed[i]) numbers[i] = fronts.size();
  return numbers;
}

std::vector<std::size_t> loneliest_first(const PointsView& front) {
  auto order = places(front.size());
  if (order.empty()) return order;
  std::vector<double> distances(front.size());
  for (std::size_t o = 0; o < front.objectives; ++o) add_distances(front, o, distances);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t i) { return distances[i]; });
  return order;
}

std::vector<std::size_t> best_first(const PointsView& points, std::span<const double> violations,
                                    const FrontOrder& order) {
  auto ranked = places(points.size());
  std::ranges::stable_sort(ranked, {}, [&](std::size_t i) { return violations[i]; });
  const auto breaking =
      std::ranges::find_if(ranked, [&](std::size_t i) { return violations[i] > 0; });
  std::vector<double> rows;
  const std::vector<std::size_t> keeping(ranked.begin(), breaking);
  for (const std::size_t i : keeping) rows.insert(rows.end(), points[i].begin(), points[i].end());
  const PointsView kept{rows, points.objectives};
  std::vector<std::vector<std::size_t>> fronts;  // places in `keeping`
  const auto numbers = front_numbers(kept);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k] >= fronts.size()) fronts.resize(numbers[k] + 1);
    fronts[numbers[k]].push_back(k);
  }
  auto next = ranked.begin();
  for (const auto& front : fronts) {
    std::vector<double> values;
    for (const std::size_t k : front) values.insert(values.end(), kept[k].begin(), kept[k].end());
    for (const std::size_t i : order({values, points.objectives})) *next++ = keeping[front[i]];
  }
  return ranked;
}

Result<double> hypervolume(const PointsView& points, std::span<const double> reference) {
  if (points.objectives != 2 && points.objectives != 3) {
    return fail(ErrorCode::unsupported, "the hypervolume is computed for 2 and 3 objectives, not " +
                                            std::to_string(points.objectives));
  }
  if (reference.size() != points.objectives) {
    return fail(ErrorCode::invalid_input,
                "the reference point has not as many numbers as there are objectives");
  }
  const auto is_finite = [](double v) { return std::isfinite(v); };
  if (!std::ranges::all_of(points.values, is_finite) || !std::ranges::all_of(reference, is_finite))
    return fail(ErrorCode::invalid_input, "a number of the hypervolume is not finite");
  return points.objectives == 2 ? area(points, reference) : volume(points, reference);
}

void ParetoArchive::add(const PointsView& points, std::size_t first) {
  assert(points.objectives == objectives_);
  std::vector<double> values = values_;
  std::vector<std::size_t> numbers = numbers_;
  const PointsView kept = this->points();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto point = points[i];
    if (has_nan(point) || is_beaten(kept, point)) continue;
    values.insert(values.end(), point.begin(), point.end());
    numbers.push_back(first + i);
  }
  if (numbers.size() == numbers_.size()) return;
  const PointsView all{values, objectives_};
  const auto left = pareto_set(all);
  values_.clear();
  numbers_.clear();
  for (const std::size_t i : left) {
    const auto point = all[i];
    values_.insert(values_.end(), point.begin(), point.end());
    numbers_.push_back(numbers[i]);
  }
}

void ParetoArchive::renumber() { std::iota(numbers_.begin(), numbers_.end(), std::size_t{0}); }

}  // namespace fleetfit::search
