#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tune/samplers/archive.h"
#include "tune/samplers/axes.h"
#include "tune/samplers/density.h"
#include "tune/samplers/samplers.h"

namespace fleetfit::tune {
namespace {

// As published (Falkner, Klein, Hutter 2018), but for three things that keep it from drawing the
// same point again and again once all good observations agree. Kernels are never that narrow, fewer
// candidates compete, and a uniform kernel keeps points far from all observations from deciding
// the quotient of densities.
constexpr double kRandomShare = 1.0 / 3;
constexpr double kGoodShare = 0.15;
constexpr double kWiden = 3;  ///< kernels are this much wider when points are drawn
constexpr double kSmallestWidth = 0.03;
constexpr std::size_t kCandidates = 24;

/// Widths of kernels by the rule for normal distributions; one for each axis.
std::vector<double> reference_widths(const Axes& axes, std::span<const Point> places) {
  std::vector<double> widths(axes.size(), 1);
  const double shrink =
      std::pow(static_cast<double>(places.size()), -1 / (4 + static_cast<double>(axes.size())));
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    double count = 0;
    double sum = 0;
    double squares = 0;
    for (const Point& point : places) {
      if (std::isnan(point[axis])) continue;
      count += 1;
      sum += point[axis];
      squares += point[axis] * point[axis];
    }
    if (count == 0) continue;
    if (axes[axis].is_choice()) {
      widths[axis] = choice_width(axes[axis], places.size());
      continue;
    }
    const double deviation =
        std::sqrt(std::max(squares / count - (sum / count) * (sum / count), 0.0));
    const double smallest = std::max(kSmallestWidth, axes[axis].step);
    widths[axis] = std::clamp(1.06 * deviation * shrink, smallest, 1.0);
  }
  return widths;
}

Density density_of(const Axes& axes, std::span<const Point> places, double widen) {
  std::vector<double> widths = reference_widths(axes, places);
  for (double& width : widths) width = std::min(width * widen, 1.0);
  Density density(axes);
  for (const Point& point : places) density.add(point, widths, 1);
  density.add_uniform(1);
  return density;
}

class Bohb final : public Sampler {
 public:
  Bohb(const Parameters& parameters, const SamplerOptions& options)
      : axes_(parameters), levels_(options, {}) {}

  void tell(const Observation& observation) override { levels_.tell(observation); }

  Point suggest(std::size_t /*trial*/, std::span<const Point> pending,
                core::Random& random) override {
    const Archive* archive = levels_.highest_with(fewest() + 2);
    if (archive == nullptr || random.chance(kRandomShare)) {
      return draw_new(axes_.parameters(), levels_, pending, random);
    }
    return best_candidate(*archive, pending, random);
  }

 private:
  /// Points that a density needs.
  std::size_t fewest() const { return axes_.size() + 1; }

  /// The good ones and the bad ones; those that are pending count as bad. Where there are few, some
  /// are both.
  std::pair<std::vector<Point>, std::vector<Point>> split(const Archive& archive,
                                                          std::span<const Point> pending) const {
    const std::vector<Kept>& best = archive.best();
    const auto share = static_cast<std::size_t>(kGoodShare * static_cast<double>(archive.count()));
    const std::size_t good_count = std::min(std::max(fewest(), share), best.size());
    const std::size_t bad_from =
        std::min(good_count, archive.count() - std::min(archive.count(), fewest()));
    std::vector<Point> good;
    std::vector<Point> bad;
    for (std::size_t i = 0; i < best.size(); ++i) {
      if (i < good_count) good.push_back(axes_.to_places(best[i].point));
      if (i >= bad_from) bad.push_back(axes_.to_places(best[i].point));
    }
    for (const Kept& kept : archive.others()) bad.push_back(axes_.to_places(kept.point));
    for (const Point& point : pending) bad.push_back(axes_.to_places(point));
    return {std::move(good), std::move(bad)};
  }

  Point best_candidate(const Archive& archive, std::span<const Point> pending,
                       core::Random& random) const {
    const auto [good, bad] = split(archive, pending);
    const Density good_density = density_of(axes_, good, 1);
    const Density bad_density = density_of(axes_, bad, 1);
    const Density source = density_of(axes_, good, kWiden);
    Point best;
    double best_score = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < kCandidates; ++i) {
      Candidate candidate = source.sample(random);
      if (!levels_.is_new(candidate.point, pending)) continue;
      const double score =
          good_density.log_density(candidate.places) - bad_density.log_density(candidate.places);
      if (!best.empty() && !(score > best_score)) continue;
      best = std::move(candidate.point);
      best_score = score;
    }
    return best.empty() ? draw_new(axes_.parameters(), levels_, pending, random) : best;
  }

  Axes axes_;
  Levels levels_;
};

}  // namespace

std::unique_ptr<Sampler> make_bohb(const Parameters& parameters, const SamplerOptions& options) {
  return std::make_unique<Bohb>(parameters, options);
}

}  // namespace fleetfit::tune
