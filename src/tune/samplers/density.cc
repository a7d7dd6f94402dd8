#include "tune/samplers/density.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace fleetfit::tune {
namespace {

/// The share of a normal distribution that lies below.
double share_below(double deviations) { return 0.5 * std::erfc(-deviations / std::numbers::sqrt2); }

}  // namespace

Axes::Stretch Axes::stretch_of(const Parameter& parameter) {
  Stretch stretch;
  stretch.whole = parameter.is_choice() || parameter.integer;
  stretch.log = !parameter.is_choice() && parameter.log;
  stretch.smallest = parameter.is_choice() ? 0 : parameter.low;
  stretch.largest =
      parameter.is_choice() ? static_cast<double>(parameter.values.size() - 1) : parameter.high;
  const double margin = stretch.whole ? 0.5 : 0;
  stretch.low = stretch.smallest - margin;
  stretch.high = stretch.largest + margin;
  if (stretch.log) {
    stretch.low = std::log(stretch.low);
    stretch.high = std::log(stretch.high);
  }
  return stretch;
}

Axes::Axes(const Parameters& parameters) : parameters_(&parameters) {
  for (const Parameter& parameter : parameters.all()) {
    const Stretch stretch = stretch_of(parameter);
    Axis axis;
    // Two values have no order worth the name.
    if (parameter.is_choice() && (!parameter.ordered || parameter.values.size() <= 2)) {
      axis.choices = parameter.values.size();
    } else if (stretch.whole) {
      axis.step = 1 / (stretch.largest - stretch.smallest + 1);
    }
    axes_.push_back(axis);
    stretches_.push_back(stretch);
  }
}

double Axes::to_place(std::size_t axis, double value) const {
  if (axes_[axis].is_choice()) return value;
  const Stretch& stretch = stretches_[axis];
  if (!(stretch.high > stretch.low)) return std::isnan(value) ? value : 0.5;
  return ((stretch.log ? std::log(value) : value) - stretch.low) / (stretch.high - stretch.low);
}

Point Axes::to_places(std::span<const double> point) const {
  Point places(point.size());
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    places[axis] = to_place(axis, point[axis]);
  }
  return places;
}

double Axes::from_place(std::size_t axis, double place) const {
  if (axes_[axis].is_choice()) return place;
  const Stretch& stretch = stretches_[axis];
  double value = stretch.low + place * (stretch.high - stretch.low);
  if (stretch.log) value = std::exp(value);
  if (stretch.whole) value = std::round(value);
  return std::isnan(value) ? value : std::clamp(value, stretch.smallest, stretch.largest);
}

double random_place(const Axis& axis, core::Random& random) {
  return axis.is_choice() ? static_cast<double>(random.below(axis.choices)) : random.uniform();
}

Density::Factor Density::stretch_factor(double place, double width) const {
  const double inside = share_below((1 - place) / width) - share_below(-place / width);
  const double scale = width * std::sqrt(2 * std::numbers::pi) * inside;
  return {.place = place, .width = width, .log_here = -std::log(scale)};
}

Density::Factor Density::choice_factor(const Axis& axis, double place, double width) const {
  const auto choices = static_cast<double>(axis.choices);
  const double own = 1 - width + width / choices;
  return {.place = place,
          .width = width,
          .log_here = std::log(own * choices),
          .log_other = axis.choices > 1 ? std::log(std::max(width, 1e-12)) : 0};
}

void Density::add(std::span<const double> places, std::span<const double> widths, double weight) {
  for (std::size_t axis = 0; axis < axes_->size(); ++axis) {
    if (std::isnan(places[axis])) {
      factors_.emplace_back();
    } else if ((*axes_)[axis].is_choice()) {
      factors_.push_back(choice_factor((*axes_)[axis], places[axis], widths[axis]));
    } else {
      factors_.push_back(stretch_factor(places[axis], widths[axis]));
    }
  }
  weights_.push_back(weight);
  log_weights_.push_back(std::log(weight));
  sum_of_weights_ += weight;
}

void Density::add_uniform(double weight) {
  const std::vector<double> nothing(axes_->size(), kInactive);
  add(nothing, nothing, weight);
}

double Density::log_kernel(std::size_t kernel, std::span<const double> places) const {
  const Factor* factors = factors_.data() + kernel * places.size();
  double sum = log_weights_[kernel];
  for (std::size_t axis = 0; axis < places.size(); ++axis) {
    const Factor& factor = factors[axis];
    if (std::isnan(factor.place) || std::isnan(places[axis])) continue;
    if ((*axes_)[axis].is_choice()) {
      sum += factor.place == places[axis] ? factor.log_here : factor.log_other;
    } else {
      const double deviations = (places[axis] - factor.place) / factor.width;
      sum += factor.log_here - 0.5 * deviations * deviations;
    }
  }
  return sum;
}

double Density::log_density(std::span<const double> places) const {
  std::vector<double> kernels(size());
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t kernel = 0; kernel < kernels.size(); ++kernel) {
    kernels[kernel] = log_kernel(kernel, places);
    largest = std::max(largest, kernels[kernel]);
  }
  double sum = 0;
  for (const double kernel : kernels) sum += std::exp(kernel - largest);
  return largest + std::log(sum / sum_of_weights_);
}

std::size_t Density::draw_kernel(core::Random& random) const {
  double left = random.uniform() * sum_of_weights_;
  for (std::size_t kernel = 0; kernel + 1 < weights_.size(); ++kernel) {
    left -= weights_[kernel];
    if (left < 0) return kernel;
  }
  return weights_.size() - 1;
}

double Density::draw_place(std::size_t axis, const Factor& factor, core::Random& random) const {
  if (std::isnan(factor.place)) return random_place((*axes_)[axis], random);
  if (!(*axes_)[axis].is_choice()) return cut_normal(factor.place, factor.width, random);
  return random.chance(factor.width) ? random_place((*axes_)[axis], random) : factor.place;
}

Candidate Density::sample(core::Random& random) const {
  const Factor* factors = factors_.data() + draw_kernel(random) * axes_->size();
  Candidate drawn{.point = Point(axes_->size(), kInactive),
                  .places = Point(axes_->size(), kInactive)};
  for (std::size_t axis = 0; axis < axes_->size(); ++axis) {
    if (!axes_->parameters().is_active(drawn.point, axis)) continue;
    drawn.point[axis] = axes_->from_place(axis, draw_place(axis, factors[axis], random));
    drawn.places[axis] = axes_->to_place(axis, drawn.point[axis]);
  }
  return drawn;
}

double choice_width(const Axis& axis, std::size_t kernels) {
  const auto values = static_cast<double>(axis.choices);
  return values / (values + static_cast<double>(kernels));
}

double cut_normal(double mean, double deviation, core::Random& random) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const double drawn = mean + deviation * random.normal();
    if (drawn >= 0 && drawn <= 1) return drawn;
  }
  return std::clamp(mean, 0.0, 1.0);
}

}  // namespace fleetfit::tune
