#include "tune/samplers/axes.h"

#include <algorithm>
#include <cmath>

namespace fleetfit::tune {

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
    } else if (stretch.high > stretch.low) {
      has_continuous_ = true;
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

}  // namespace fleetfit::tune
