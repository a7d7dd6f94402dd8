#include "tune/samplers/archive.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "fleetfit/core/random.h"
#include "fleetfit/search/pareto.h"

namespace fleetfit::tune {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kSampleSeed = 0x5a3d1e;

/// Random, but always the same for one observation, so that which ones are kept depends on nothing
/// else.
std::uint64_t lot(const Kept& kept) { return core::mix(kSampleSeed, kept.order); }

bool smaller_lot(const Kept& a, const Kept& b) { return lot(a) < lot(b); }

/// For one objective, and for what breaks limits.
bool is_better(const Kept& a, const Kept& b) {
  if (a.violation != b.violation) return a.violation < b.violation;
  if (a.values.front() != b.values.front()) return a.values.front() < b.values.front();
  return a.order < b.order;
}

Kept keep(const Observation& observation, std::uint64_t order, std::size_t objectives) {
  Kept kept{.point = observation.point, .values = observation.values, .order = order};
  kept.violation =
      std::isnan(observation.violation) ? kInfinity : std::max(observation.violation, 0.0);
  // A limit that is broken before training leaves no values.
  kept.values.resize(objectives, kInfinity);
  for (double& value : kept.values) {
    if (std::isnan(value)) value = kInfinity;
  }
  return kept;
}

/// The values of one front, each objective stretched to 0 … 1; what is infinite lies at 1.
std::vector<double> normalized(std::span<const Kept> front, std::size_t objectives) {
  std::vector<double> values(front.size() * objectives, 1.0);
  for (std::size_t objective = 0; objective < objectives; ++objective) {
    double low = kInfinity;
    double high = -kInfinity;
    for (const Kept& kept : front) {
      if (!std::isfinite(kept.values[objective])) continue;
      low = std::min(low, kept.values[objective]);
      high = std::max(high, kept.values[objective]);
    }
    for (std::size_t i = 0; i < front.size(); ++i) {
      const double value = front[i].values[objective];
      if (value == -kInfinity) values[i * objectives + objective] = 0;
      if (!std::isfinite(value)) continue;
      values[i * objectives + objective] = high > low ? (value - low) / (high - low) : 0;
    }
  }
  return values;
}

/// What each point adds to the volume that the front dominates.
std::vector<double> volume_added(const std::vector<double>& values, std::size_t objectives) {
  const std::vector<double> reference(objectives, 1.1);
  const double whole = search::hypervolume({values, objectives}, reference).value_or(0);
  std::vector<double> added;
  for (std::size_t row = 0; row < values.size() / objectives; ++row) {
    std::vector<double> others = values;
    const auto begin = others.begin() + static_cast<std::ptrdiff_t>(row * objectives);
    others.erase(begin, begin + static_cast<std::ptrdiff_t>(objectives));
    added.push_back(whole - search::hypervolume({others, objectives}, reference).value_or(0));
  }
  return added;
}

/// How far the neighbours of a point are apart, over all objectives: for more objectives than
/// volumes are worked out for.
std::vector<double> room_around(const std::vector<double>& values, std::size_t objectives) {
  const std::size_t count = values.size() / objectives;
  std::vector<double> room(count, 0);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t objective = 0; objective < objectives; ++objective) {
    const auto value = [&](std::size_t row) { return values[row * objectives + objective]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return value(a) < value(b); });
    room[order.front()] = kInfinity;
    room[order.back()] = kInfinity;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      room[order[i]] += value(order[i + 1]) - value(order[i - 1]);
    }
  }
  return room;
}

void sort_front(std::span<Kept> front, std::size_t objectives) {
  if (front.size() < 2) return;
  const std::vector<double> values = normalized(front, objectives);
  const std::vector<double> worth =
      objectives <= 3 ? volume_added(values, objectives) : room_around(values, objectives);
  std::vector<std::size_t> order(front.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return worth[a] > worth[b]; });
  std::vector<Kept> sorted;
  sorted.reserve(front.size());
  for (const std::size_t i : order) sorted.push_back(std::move(front[i]));
  std::move(sorted.begin(), sorted.end(), front.begin());
}

std::vector<std::uint32_t> fronts_of(std::span<const Kept> observations, std::size_t objectives) {
  std::vector<double> values;
  for (const Kept& kept : observations) {
    values.insert(values.end(), kept.values.begin(), kept.values.end());
  }
  return search::front_numbers({values, objectives});
}

void rank_feasible(std::span<Kept> observations, std::size_t objectives) {
  const std::vector<std::uint32_t> fronts = fronts_of(observations, objectives);
  std::vector<std::size_t> order(observations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return fronts[a] < fronts[b]; });
  std::vector<Kept> sorted;
  sorted.reserve(order.size());
  for (const std::size_t i : order) sorted.push_back(std::move(observations[i]));
  std::move(sorted.begin(), sorted.end(), observations.begin());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && fronts[order[end]] == fronts[order[begin]]) ++end;
    sort_front(observations.subspan(begin, end - begin), objectives);
    begin = end;
  }
}

}  // namespace

void rank_best_first(std::vector<Kept>& observations, std::size_t objectives) {
  // The order in which they were told settles what is equal, however they lay before.
  std::sort(observations.begin(), observations.end(), [](const Kept& a, const Kept& b) {
    return a.violation != b.violation ? a.violation < b.violation : a.order < b.order;
  });
  const auto broken = std::find_if(observations.begin(), observations.end(),
                                   [](const Kept& kept) { return kept.violation > 0; });
  rank_feasible({observations.begin(), broken}, objectives);
}

Archive::Archive(std::size_t objectives, const Limits& limits)
    : objectives_(std::max<std::size_t>(objectives, 1)), limits_(limits) {}

void Archive::tell(const Observation& observation) {
  Kept kept = keep(observation, count_, objectives_);
  ++count_;
  if (objectives_ == 1) return insert_sorted(std::move(kept));
  best_.push_back(std::move(kept));
  ranked_ = false;
  // Ranking takes the square of their number, so it is done once in a while.
  if (best_.size() >= 2 * limits_.best) sort_out();
}

void Archive::insert_sorted(Kept kept) {
  best_.insert(std::upper_bound(best_.begin(), best_.end(), kept, is_better), std::move(kept));
  if (best_.size() <= limits_.best) return;
  sample(std::move(best_.back()));
  best_.pop_back();
}

void Archive::sort_out() {
  rank_best_first(best_, objectives_);
  ranked_ = true;
  while (best_.size() > limits_.best) {
    sample(std::move(best_.back()));
    best_.pop_back();
  }
}

void Archive::sample(Kept kept) {
  if (others_.size() < limits_.others) {
    others_.push_back(std::move(kept));
    std::push_heap(others_.begin(), others_.end(), smaller_lot);
    return;
  }
  if (others_.empty() || !smaller_lot(kept, others_.front())) return;
  std::pop_heap(others_.begin(), others_.end(), smaller_lot);
  others_.back() = std::move(kept);
  std::push_heap(others_.begin(), others_.end(), smaller_lot);
}

const std::vector<Kept>& Archive::best() const {
  if (!ranked_) rank_best_first(best_, objectives_);
  ranked_ = true;
  return best_;
}

double Archive::weight_of_others() const {
  if (others_.empty()) return 1;
  return static_cast<double>(count_ - best_.size()) / static_cast<double>(others_.size());
}

Levels::Levels(const SamplerOptions& options, const Archive::Limits& limits)
    : archives_(std::max<std::size_t>(options.levels, 1), Archive(options.objectives, limits)) {}

void Levels::tell(const Observation& observation) {
  archives_[std::min(observation.level, archives_.size() - 1)].tell(observation);
  told_.insert(fingerprint(observation.point));
}

const Archive* Levels::highest_with(std::size_t observations) const {
  const auto found =
      std::find_if(archives_.rbegin(), archives_.rend(),
                   [&](const Archive& archive) { return archive.count() >= observations; });
  return found == archives_.rend() ? nullptr : &*found;
}

bool Levels::is_new(const Point& point, std::span<const Point> pending) const {
  return !told_.contains(fingerprint(point)) &&
         std::none_of(pending.begin(), pending.end(),
                      [&](const Point& other) { return same_point(other, point); });
}

Point draw_new(const Parameters& parameters, const Levels& levels, std::span<const Point> pending,
               core::Random& random) {
  constexpr int kTries = 50;
  Point point = parameters.sample(random);
  for (int i = 1; i < kTries && !levels.is_new(point, pending); ++i) {
    point = parameters.sample(random);
  }
  return point;
}

std::uint64_t fingerprint(const Point& point) {
  std::uint64_t print = point.size();
  for (const double value : point) {
    // Zero has two signs, and NaN many forms.
    const double one = std::isnan(value) ? kInactive : value + 0.0;
    print = core::mix(print, std::bit_cast<std::uint64_t>(one));
  }
  return print;
}

}  // namespace fleetfit::tune
