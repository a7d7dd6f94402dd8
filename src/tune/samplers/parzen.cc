#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tune/samplers/archive.h"
#include "tune/samplers/density.h"
#include "tune/samplers/samplers.h"

/// Parzen estimators: a density of the good observations and one of the bad; of points drawn from
/// the first, the one where the ratio of the two is largest. Pending points count as bad.
namespace fleetfit::tune {
namespace {

class Parzen : public Sampler {
 public:
  Parzen(const Parameters& parameters, const SamplerOptions& options)
      : axes_(parameters), levels_(options, {}) {}

  void tell(const Observation& observation) override { levels_.tell(observation); }

 protected:
  struct Densities {
    const Density& source;  ///< that points are drawn from
    const Density& good;
    const Density& bad;
  };
  struct Draws {
    std::size_t most = 0;
    std::size_t new_ones = 0;  ///< so many are enough
  };

  const Axes& axes() const { return axes_; }
  const Levels& levels() const { return levels_; }

  Point any_point(std::span<const Point> pending, core::Random& random) const {
    return draw_new(axes_.parameters(), levels_, pending, random);
  }

  Point best_candidate(const Densities& densities, const Draws& draws,
                       std::span<const Point> pending, core::Random& random) const {
    Point best;
    double best_score = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0, fresh = 0; i < draws.most && fresh < draws.new_ones; ++i) {
      Candidate candidate = densities.source.sample(random);
      if (!levels_.is_new(candidate.point, pending)) continue;
      ++fresh;
      const double score = densities.good.log_density(candidate.places) -
                           densities.bad.log_density(candidate.places);
      if (!best.empty() && !(score > best_score)) continue;
      best = std::move(candidate.point);
      best_score = score;
    }
    return best.empty() ? any_point(pending, random) : best;
  }

 private:
  Axes axes_;
  Levels levels_;
};

// --- TPE ---

// Chosen on the functions that bench/tune_functions.json calls "other".
constexpr std::size_t kTpeStartup = 10;    // observations before there is a model
constexpr double kTpeGoodShare = 0.15;     // of the observations
constexpr std::size_t kTpeGoodLimit = 25;  // never more of them
constexpr std::size_t kTpeCandidates = 24;
constexpr double kTpeUniformWeight = 0.5;  // in each density; an observation has about 1
constexpr double kTpeBadWidth = 0.2;  // of the kernels of bad observations, while there are few
constexpr double kTpeSmallestWidth = 0.01;

struct Weighted {
  Point places = {};
  double weight = 1;
};

/// How much narrower kernels are the more there are of them, so that the density keeps its shape.
double shrinking(std::size_t kernels, std::size_t axes) {
  return std::pow(static_cast<double>(kernels), -1 / (static_cast<double>(axes) + 4));
}

/// How far points lie apart on an axis, with one that may be anywhere beside them: a few that agree
/// by chance do not yet count.
double deviation(std::span<const Weighted> points, std::size_t axis) {
  double weight = 1;
  double sum = 0.5;
  double squares = 1.0 / 3;
  for (const Weighted& point : points) {
    const double place = point.places[axis];
    if (std::isnan(place)) continue;
    weight += point.weight;
    sum += point.weight * place;
    squares += point.weight * place * place;
  }
  const double mean = sum / weight;
  return std::sqrt(std::max(squares / weight - mean * mean, 0.0));
}

/// Tree-structured Parzen estimators over all parameters at once; the better ones of the good
/// observations count more.
class Tpe final : public Parzen {
 public:
  using Parzen::Parzen;

  Point suggest(std::size_t /*trial*/, std::span<const Point> pending,
                core::Random& random) override {
    const Archive* archive = levels().highest_with(kTpeStartup);
    if (archive == nullptr) return any_point(pending, random);
    const std::size_t count = good_count(*archive);
    const Density good = good_density(*archive, count);
    // Where most points of a finite space were tried, many draws are needed to meet a new one.
    return best_candidate({good, good, bad_density(*archive, count, pending)},
                          {.most = 10 * kTpeCandidates, .new_ones = kTpeCandidates}, pending,
                          random);
  }

 private:
  static std::size_t good_count(const Archive& archive) {
    const auto share = std::ceil(kTpeGoodShare * static_cast<double>(archive.count()));
    return std::min(static_cast<std::size_t>(share), kTpeGoodLimit);
  }

  /// Widths follow how far the good ones lie apart on each axis: where they agree, the next points
  /// come close to them.
  Density good_density(const Archive& archive, std::size_t count) const {
    std::vector<Weighted> points;
    for (std::size_t i = 0; i < count; ++i) {
      const double rank = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
      points.push_back({axes().to_places(archive.best()[i].point), 2 * (1 - rank)});
    }
    std::vector<double> widths(axes().size());
    for (std::size_t axis = 0; axis < axes().size(); ++axis) {
      widths[axis] = 1.06 * deviation(points, axis);
    }
    return density_of(points, std::move(widths));
  }

  /// Fixed widths: what is known to be bad is only so nearby.
  Density bad_density(const Archive& archive, std::size_t good,
                      std::span<const Point> pending) const {
    std::vector<Weighted> points;
    for (const Kept& kept : std::span(archive.best()).subspan(good)) {
      points.push_back({axes().to_places(kept.point), 1});
    }
    for (const Kept& kept : archive.others()) {
      points.push_back({axes().to_places(kept.point), archive.weight_of_others()});
    }
    for (const Point& point : pending) points.push_back({axes().to_places(point), 1});
    return density_of(points, std::vector<double>(axes().size(), kTpeBadWidth));
  }

  /// `widths`: as if there was one kernel.
  Density density_of(std::span<const Weighted> points, std::vector<double> widths) const {
    for (std::size_t axis = 0; axis < axes().size(); ++axis) {
      const double smallest = std::max(kTpeSmallestWidth, 0.5 * axes()[axis].step);
      widths[axis] =
          axes()[axis].is_choice()
              ? choice_width(axes()[axis], points.size())
              : std::max(widths[axis] * shrinking(points.size(), axes().size()), smallest);
    }
    Density density(axes());
    for (const Weighted& point : points) density.add(point.places, widths, point.weight);
    density.add_uniform(kTpeUniformWeight);
    return density;
  }
};

// --- BOHB ---

// As published (Falkner, Klein, Hutter 2018), but for three things that keep it from drawing the
// same point again and again once all good observations agree. Kernels are never that narrow, fewer
// candidates compete, and a uniform kernel keeps points far from all observations from deciding
// the quotient of densities.
constexpr double kBohbRandomShare = 1.0 / 3;
constexpr double kBohbGoodShare = 0.15;
constexpr double kBohbWiden = 3;  ///< kernels are this much wider when points are drawn
constexpr double kBohbSmallestWidth = 0.03;
constexpr std::size_t kBohbCandidates = 24;

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
    const double smallest = std::max(kBohbSmallestWidth, axes[axis].step);
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

class Bohb final : public Parzen {
 public:
  using Parzen::Parzen;

  Point suggest(std::size_t /*trial*/, std::span<const Point> pending,
                core::Random& random) override {
    const Archive* archive = levels().highest_with(fewest() + 2);
    if (archive == nullptr || random.chance(kBohbRandomShare)) return any_point(pending, random);
    const auto [good, bad] = split(*archive, pending);
    return best_candidate({density_of(axes(), good, kBohbWiden), density_of(axes(), good, 1),
                           density_of(axes(), bad, 1)},
                          {.most = kBohbCandidates, .new_ones = kBohbCandidates}, pending, random);
  }

 private:
  /// Points that a density needs.
  std::size_t fewest() const { return axes().size() + 1; }

  /// The good ones and the bad ones; those that are pending count as bad. Where there are few, some
  /// are both.
  std::pair<std::vector<Point>, std::vector<Point>> split(const Archive& archive,
                                                          std::span<const Point> pending) const {
    const std::vector<Kept>& best = archive.best();
    const auto share =
        static_cast<std::size_t>(kBohbGoodShare * static_cast<double>(archive.count()));
    const std::size_t good_count = std::min(std::max(fewest(), share), best.size());
    const std::size_t bad_from =
        std::min(good_count, archive.count() - std::min(archive.count(), fewest()));
    std::vector<Point> good;
    std::vector<Point> bad;
    for (std::size_t i = 0; i < best.size(); ++i) {
      if (i < good_count) good.push_back(axes().to_places(best[i].point));
      if (i >= bad_from) bad.push_back(axes().to_places(best[i].point));
    }
    for (const Kept& kept : archive.others()) bad.push_back(axes().to_places(kept.point));
    for (const Point& point : pending) bad.push_back(axes().to_places(point));
    return {std::move(good), std::move(bad)};
  }
};

}  // namespace

std::unique_ptr<Sampler> make_tpe(const Parameters& parameters, const SamplerOptions& options) {
  return std::make_unique<Tpe>(parameters, options);
}

std::unique_ptr<Sampler> make_bohb(const Parameters& parameters, const SamplerOptions& options) {
  return std::make_unique<Bohb>(parameters, options);
}

}  // namespace fleetfit::tune
