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
std::uint64_t lot(const Kept& kept) { return core::mix(kSampleSeed, kept.trial); }

bool smaller_lot(const Kept& a, const Kept& b) { return lot(a) < lot(b); }

/// For one objective, and for what breaks limits.
bool is_better(const Kept& a, const Kept& b) {
  if (a.violation != b.violation) return a.violation < b.violation;
  if (a.values.front() != b.values.front()) return a.values.front() < b.values.front();
  return a.trial < b.trial;
}

Kept keep(const Observation& observation, std::size_t objectives) {
  Kept kept{.point = observation.point, .values = observation.values, .trial = observation.trial};
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
std::vector<double> normalized(const search::PointsView& front) {
  std::vector<double> values(front.values.size(), 1.0);
  for (std::size_t objective = 0; objective < front.objectives; ++objective) {
    double low = kInfinity;
    double high = -kInfinity;
    for (std::size_t i = 0; i < front.size(); ++i) {
      if (!std::isfinite(front[i][objective])) continue;
      low = std::min(low, front[i][objective]);
      high = std::max(high, front[i][objective]);
    }
    for (std::size_t i = 0; i < front.size(); ++i) {
      const double value = front[i][objective];
      double& place = values[i * front.objectives + objective];
      if (value == -kInfinity) place = 0;
      if (!std::isfinite(value)) continue;
      place = high > low ? (value - low) / (high - low) : 0;
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

/// With two objectives: the one that adds least goes last, then the one that adds least without it,
/// and so on, so that of two neighbours one stays.
std::vector<std::size_t> order_in_plane(const std::vector<double>& values) {
  constexpr double kReference = 1.1;
  std::vector<std::size_t> left(values.size() / 2);
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::stable_sort(left.begin(), left.end(),
                   [&](std::size_t a, std::size_t b) { return values[2 * a] < values[2 * b]; });
  std::vector<std::size_t> order;
  while (!left.empty()) {
    std::size_t least = 0;
    double least_area = kInfinity;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const double next = i + 1 < left.size() ? values[2 * left[i + 1]] : kReference;
      const double above = i > 0 ? values[2 * left[i - 1] + 1] : kReference;
      const double area = (next - values[2 * left[i]]) * (above - values[2 * left[i] + 1]);
      if (area >= least_area) continue;
      least = i;
      least_area = area;
    }
    order.push_back(left[least]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(least));
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<std::size_t> order_in_space(const std::vector<double>& values) {
  const std::vector<double> worth = volume_added(values, 3);
  std::vector<std::size_t> order(worth.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return worth[a] > worth[b]; });
  return order;
}

/// By what they add to the volume that the front dominates; by their distances where there are more
/// objectives than volumes are worked out for.
std::vector<std::size_t> order_by_volume(const search::PointsView& front) {
  const std::vector<double> values = normalized(front);
  if (front.objectives == 2) return order_in_plane(values);
  if (front.objectives == 3) return order_in_space(values);
  return search::loneliest_first({values, front.objectives});
}

}  // namespace

void rank_best_first(std::vector<Kept>& observations, std::size_t objectives) {
  // The trial's number settles what is equal, however they lay before.
  std::ranges::sort(observations, {}, &Kept::trial);
  std::vector<double> values;
  std::vector<double> violations;
  for (const Kept& kept : observations) {
    values.insert(values.end(), kept.values.begin(), kept.values.end());
    violations.push_back(kept.violation);
  }
  std::vector<Kept> ranked;
  ranked.reserve(observations.size());
  for (const std::size_t i : search::best_first({values, objectives}, violations, order_by_volume))
    ranked.push_back(std::move(observations[i]));
  observations = std::move(ranked);
}

Archive::Archive(std::size_t objectives, const Limits& limits)
    : objectives_(std::max<std::size_t>(objectives, 1)), limits_(limits) {}

void Archive::tell(const Observation& observation) {
  Kept kept = keep(observation, objectives_);
  ++count_;
  if (objectives_ == 1) return insert_sorted(std::move(kept));
  best_.push_back(std::move(kept));
  ranked_ = false;
  // Ranking takes the square of their number, so it is done once in a while.
  if (best_.size() >= 2 * limits_.best) sort_out();
}

void Archive::insert_sorted(Kept kept) {
  const auto place = std::upper_bound(best_.begin(), best_.end(), kept, is_better);
  best_.insert(place, std::move(kept));
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
