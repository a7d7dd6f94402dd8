#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/tune/parameters.h"

namespace fleetfit::tune {

/// One parameter as densities see it: a stretch from 0 to 1, or choices without an order. Whole
/// numbers and ordered choices are steps of the stretch, each with a cell of its own.
struct Axis {
  std::size_t choices = 0;  ///< 0 for a stretch
  double step = 0;          ///< the mean width of a cell; 0 where numbers are continuous

  bool is_choice() const { return choices != 0; }
};

/// A parameter's numbers as places on axes and back. NaN stays NaN. Borrows the parameters.
class Axes {
 public:
  explicit Axes(const Parameters& parameters);

  std::size_t size() const { return axes_.size(); }
  const Axis& operator[](std::size_t axis) const { return axes_[axis]; }
  const Parameters& parameters() const { return *parameters_; }

  double to_place(std::size_t axis, double value) const;
  Point to_places(std::span<const double> point) const;

  /// The value whose place is nearest; `place` may lie anywhere.
  double from_place(std::size_t axis, double place) const;

  /// No two points are alike but by chance, since some number is continuous.
  bool has_continuous() const { return has_continuous_; }

 private:
  struct Stretch {
    double low = 0;  ///< in the logarithm for `log`
    double high = 0;
    double smallest = 0;  ///< the values at the ends
    double largest = 0;
    bool whole = false;
    bool log = false;
  };

  static Stretch stretch_of(const Parameter& parameter);

  const Parameters* parameters_;
  std::vector<Axis> axes_;
  std::vector<Stretch> stretches_;
  bool has_continuous_ = false;
};

/// A random place: of a stretch uniform, of choices an index.
double random_place(const Axis& axis, core::Random& random);

}  // namespace fleetfit::tune
