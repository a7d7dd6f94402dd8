#include "tune/samplers/tpe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tune/samplers/archive.h"
#include "tune/samplers/axes.h"
#include "tune/samplers/density.h"

namespace fleetfit::tune {
namespace {

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

class Tpe final : public Sampler {
 public:
  Tpe(const Parameters& parameters, const SamplerOptions& options, const TpeOptions& tpe)
      : tpe_(tpe), axes_(parameters), levels_(options, {}) {}

  void tell(const Observation& observation) override { levels_.tell(observation); }

  Point suggest(std::size_t /*trial*/, std::span<const Point> pending,
                core::Random& random) override {
    const Archive* archive = levels_.highest_with(tpe_.startup);
    if (archive == nullptr) return draw_new(axes_.parameters(), levels_, pending, random);
    const std::size_t good = good_count(*archive);
    return best_candidate(good_density(*archive, good), bad_density(*archive, good, pending),
                          pending, random);
  }

 private:
  std::size_t good_count(const Archive& archive) const {
    const auto share = std::ceil(tpe_.good_share * static_cast<double>(archive.count()));
    return std::min(static_cast<std::size_t>(share), tpe_.good_limit);
  }

  /// Widths follow how far the good ones lie apart on each axis: where they agree, the next points
  /// come close to them.
  Density good_density(const Archive& archive, std::size_t count) const {
    std::vector<Weighted> points;
    for (std::size_t i = 0; i < count; ++i) {
      const double rank = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
      points.push_back({axes_.to_places(archive.best()[i].point), 2 * (1 - rank)});
    }
    std::vector<double> widths(axes_.size());
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      widths[axis] = 1.06 * deviation(points, axis);
    }
    return density_of(points, std::move(widths));
  }

  /// Fixed widths: what is known to be bad is only so nearby.
  Density bad_density(const Archive& archive, std::size_t good,
                      std::span<const Point> pending) const {
    std::vector<Weighted> points;
    for (const Kept& kept : std::span(archive.best()).subspan(good)) {
      points.push_back({axes_.to_places(kept.point), 1});
    }
    for (const Kept& kept : archive.others()) {
      points.push_back({axes_.to_places(kept.point), archive.weight_of_others()});
    }
    for (const Point& point : pending) points.push_back({axes_.to_places(point), 1});
    return density_of(points, std::vector<double>(axes_.size(), tpe_.bad_width));
  }

  /// `widths`: as if there was one kernel.
  Density density_of(std::span<const Weighted> points, std::vector<double> widths) const {
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      const double smallest = std::max(tpe_.smallest_width, 0.5 * axes_[axis].step);
      widths[axis] =
          axes_[axis].is_choice()
              ? choice_width(axes_[axis], points.size())
              : std::max(widths[axis] * shrinking(points.size(), axes_.size()), smallest);
    }
    Density density(axes_);
    for (const Weighted& point : points) density.add(point.places, widths, point.weight);
    density.add_uniform(tpe_.uniform_weight);
    return density;
  }

  Point best_candidate(const Density& good, const Density& bad, std::span<const Point> pending,
                       core::Random& random) const {
    Point best;
    double best_score = -std::numeric_limits<double>::infinity();
    // Where most points of a finite space were tried, many draws are needed to meet a new one.
    const std::size_t most = 10 * tpe_.candidates;
    for (std::size_t i = 0, fresh = 0; i < most && fresh < tpe_.candidates; ++i) {
      Candidate candidate = good.sample(random);
      if (!levels_.is_new(candidate.point, pending)) continue;
      ++fresh;
      const double score = good.log_density(candidate.places) - bad.log_density(candidate.places);
      if (!best.empty() && !(score > best_score)) continue;
      best = std::move(candidate.point);
      best_score = score;
    }
    return best.empty() ? draw_new(axes_.parameters(), levels_, pending, random) : best;
  }

  TpeOptions tpe_;
  Axes axes_;
  Levels levels_;
};

}  // namespace

std::unique_ptr<Sampler> make_tpe(const Parameters& parameters, const SamplerOptions& options,
                                  const TpeOptions& tpe) {
  return std::make_unique<Tpe>(parameters, options, tpe);
}

}  // namespace fleetfit::tune
