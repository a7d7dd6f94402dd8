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
  Point places;
  double weight = 1;
};

class Tpe final : public Sampler {
 public:
  Tpe(const Parameters& parameters, const SamplerOptions& options, const TpeOptions& tpe)
      : tpe_(tpe), axes_(parameters), levels_(options, {}) {}

  void tell(const Observation& observation) override { levels_.tell(observation); }

  Point suggest(std::size_t trial, std::span<const Point> pending, core::Random& random) override {
    static_cast<void>(trial);
    const Archive* archive = levels_.highest_with(tpe_.startup);
    if (archive == nullptr) return first_points(pending, random);
    if (tpe_.random_share > 0 && random.chance(tpe_.random_share)) return axes_.parameters().sample(random);
    return from_model(*archive, pending, random);
  }

 private:
  double distance(std::span<const double> a, std::span<const double> b) const {
    double sum = 0;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      const bool x = std::isnan(a[axis]), y = std::isnan(b[axis]);
      if (x && y) continue;
      if (x != y) { sum += 0.25; continue; }
      if (axes_[axis].is_choice()) sum += a[axis] != b[axis] ? 0.5 : 0;
      else sum += (a[axis] - b[axis]) * (a[axis] - b[axis]);
    }
    return sum;
  }

  Point first_points(std::span<const Point> pending, core::Random& random) {
    if (tpe_.spread == 0) return axes_.parameters().sample(random);
    std::vector<Point> known;
    if (const Archive* a = levels_.highest_with(1)) for (const Kept& k : a->best()) known.push_back(axes_.to_places(k.point));
    for (const Point& p : pending) known.push_back(axes_.to_places(p));
    Point best; double far = -1;
    for (int i = 0; i < tpe_.spread; ++i) {
      Point p = axes_.parameters().sample(random);
      const Point at = axes_.to_places(p);
      double near = 1e9;
      for (const Point& k : known) near = std::min(near, distance(at, k));
      if (near > far) { far = near; best = p; }
    }
    return best;
  }

  std::size_t good_count(std::size_t n) const {
    const double nn = static_cast<double>(n);
    const double g = tpe_.sqrt_gamma ? std::ceil(tpe_.good_share * std::sqrt(nn)) : std::ceil(tpe_.good_share * nn);
    return std::clamp<std::size_t>(static_cast<std::size_t>(g), 1, tpe_.good_limit);
  }

  // widths
  void fill(Density& density, std::vector<Weighted>& points, int rule, double factor) const {
    const std::size_t d = axes_.size();
    const double n = static_cast<double>(points.size());
    std::vector<std::vector<double>> widths(points.size(), std::vector<double>(d, 1.0));
    for (std::size_t a = 0; a < d; ++a) {
      if (axes_[a].is_choice()) {
        const double k = static_cast<double>(axes_[a].choices);
        (void)k;
        const double h = std::min(1.0, tpe_.choice_width * k / (n + tpe_.choice_width * k));
        for (auto& w : widths) w[a] = h;
        continue;
      }
      const double scott = std::pow(n, -1.0 / (static_cast<double>(d) + 4));
      const double least = std::max(tpe_.smallest_width, 0.5 * axes_[a].step);
      if (rule == 0) {
        for (auto& w : widths) w[a] = std::max(least, factor * 0.2 * scott);
      } else if (rule == 1) {
        double sw = 1, m = 0.5, q = 1.0 / 12 + 0.25;  // uniform pseudo-observation
        for (auto& p : points) if (!std::isnan(p.places[a])) { sw += p.weight; m += p.weight * p.places[a]; q += p.weight * p.places[a] * p.places[a]; }
        m /= sw; q /= sw;
        const double dev = std::sqrt(std::max(0.0, q - m * m));
        for (auto& w : widths) w[a] = std::clamp(factor * 1.06 * dev * scott, least, 1.0);
      } else if (rule == 2) {
        std::vector<std::pair<double, std::size_t>> s;
        for (std::size_t i = 0; i < points.size(); ++i) if (!std::isnan(points[i].places[a])) s.emplace_back(points[i].places[a], i);
        std::sort(s.begin(), s.end());
        for (std::size_t j = 0; j < s.size(); ++j) {
          const double l = j ? s[j].first - s[j - 1].first : s[j].first;
          const double r = j + 1 < s.size() ? s[j + 1].first - s[j].first : 1 - s[j].first;
          widths[s[j].second][a] = std::clamp(factor * std::max(l, r), std::max(least, 1.0 / std::min(100.0, n + 1)), 1.0);
        }
      } else if (rule == 4) {  // pure weighted deviation without prior
        double sw = 0, m = 0, q = 0;
        for (auto& p : points) if (!std::isnan(p.places[a])) { sw += p.weight; m += p.weight * p.places[a]; q += p.weight * p.places[a] * p.places[a]; }
        if (sw == 0) continue;
        m /= sw; q /= sw;
        const double dev = sw > 1 ? std::sqrt(std::max(0.0, q - m * m)) : 0.2;
        for (auto& w : widths) w[a] = std::clamp(factor * 1.06 * dev * scott, least, 1.0);
      }
    }
    if (rule == 3) {  // nearest neighbours over all axes: k-th by vector distance, per-axis share
      for (std::size_t i = 0; i < points.size(); ++i) {
        std::vector<std::pair<double, std::size_t>> near;
        for (std::size_t j = 0; j < points.size(); ++j) if (j != i) near.emplace_back(distance(points[i].places, points[j].places), j);
        const std::size_t k = std::min<std::size_t>(near.size(), std::max<std::size_t>(2, static_cast<std::size_t>(std::sqrt(n))));
        std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(k), near.end());
        for (std::size_t a = 0; a < d; ++a) {
          if (axes_[a].is_choice() || std::isnan(points[i].places[a])) continue;
          double sum = 0; double c = 0;
          for (std::size_t j = 0; j < k; ++j) { const double o = points[near[j].second].places[a]; if (!std::isnan(o)) { sum += (o - points[i].places[a]) * (o - points[i].places[a]); c += 1; } }
          const double w = c > 0 ? std::sqrt(sum / c) : 0.2;
          widths[i][a] = std::clamp(factor * w, std::max(tpe_.smallest_width, 0.5 * axes_[a].step), 1.0);
        }
      }
    }
    for (std::size_t i = 0; i < points.size(); ++i) density.add(points[i].places, widths[i], points[i].weight);
  }

  Point from_model(const Archive& archive, std::span<const Point> pending, core::Random& random) {
    const std::size_t n_good = good_count(archive.count());
    std::vector<Weighted> good, bad;
    const auto& best = archive.best();
    for (std::size_t i = 0; i < best.size(); ++i) {
      if (i < n_good) {
        const double r = (static_cast<double>(i) + 0.5) / static_cast<double>(n_good);
        good.push_back({axes_.to_places(best[i].point), 1 - tpe_.rank_weight + tpe_.rank_weight * 2 * (1 - r)});
      } else bad.push_back({axes_.to_places(best[i].point), 1});
    }
    for (const Kept& k : archive.others()) bad.push_back({axes_.to_places(k.point), archive.weight_of_others()});
    for (const Point& p : pending) bad.push_back({axes_.to_places(p), 1});
    const double wob = tpe_.wobble > 0 ? std::exp(tpe_.wobble * (2 * random.uniform() - 1)) : 1;
    Density l(axes_), g(axes_);
    fill(l, good, tpe_.good_rule, tpe_.good_factor * wob);
    fill(g, bad, tpe_.bad_rule, tpe_.bad_factor);
    l.add_uniform(tpe_.prior);
    g.add_uniform(tpe_.prior);
    Candidate top; double score = -std::numeric_limits<double>::infinity();
    auto consider = [&](Candidate c) {
      if (levels_.was_told(c.point)) return;
      for (const Point& p : pending) if (fingerprint(p) == fingerprint(c.point)) return;
      const double s = l.log_density(c.places) - g.log_density(c.places);
      if (s > score) { score = s; top = std::move(c); }
    };
    for (std::size_t i = 0; i < tpe_.candidates; ++i) consider(l.sample(random));
    for (std::size_t i = 0; i < 10 * tpe_.candidates && top.point.empty(); ++i) consider(l.sample(random));
    if (top.point.empty()) return axes_.parameters().sample(random);
    for (std::size_t i = 0; i < tpe_.refinements; ++i) {
      Candidate c = top;
      for (std::size_t a = 0; a < axes_.size(); ++a) {
        if (std::isnan(c.point[a]) || axes_[a].is_choice()) continue;
        c.point[a] = axes_.from_place(a, cut_normal(c.places[a], 0.1 * std::pow(0.85, static_cast<double>(i)), random));
        c.places[a] = axes_.to_place(a, c.point[a]);
      }
      consider(std::move(c));
    }
    return top.point;
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
