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
};

/// A random place: of a stretch uniform, of choices an index.
double random_place(const Axis& axis, core::Random& random);

/// A point with its places on the axes.
struct Candidate {
  Point point = {};
  Point places = {};
};

/// A mixture of kernels, each a product over the axes: on a stretch a normal distribution cut off
/// at its ends, on choices a probability to be another than the kernel's. Where a kernel has no
/// place, since its parameter is not active there, it is uniform. Borrows the axes.
class Density {
 public:
  explicit Density(const Axes& axes) : axes_(&axes) {}

  /// `widths`: on a stretch the standard deviation; on choices the share of the uniform
  /// distribution in the kernel, 0 to 1.
  void add(std::span<const double> places, std::span<const double> widths, double weight);
  void add_uniform(double weight);

  std::size_t size() const { return log_weights_.size(); }

  /// The logarithm of the density, up to a constant that is the same for all densities over these
  /// axes, at places which may lack some (NaN).
  double log_density(std::span<const double> places) const;

  /// Draws a kernel, and from it a point of the parameters.
  Candidate sample(core::Random& random) const;

 private:
  struct Factor {
    double place = kInactive;
    double width = 1;
    double log_here = 0;   ///< stretch: of the normalization; choice: of the kernel's own value
    double log_other = 0;  ///< choice: of each other value
  };

  Factor stretch_factor(double place, double width) const;
  Factor choice_factor(const Axis& axis, double place, double width) const;
  double log_kernel(std::size_t kernel, std::span<const double> places) const;
  std::size_t draw_kernel(core::Random& random) const;
  double draw_place(std::size_t axis, const Factor& factor, core::Random& random) const;

  const Axes* axes_;
  std::vector<Factor> factors_;  ///< kernel by kernel
  std::vector<double> weights_;
  std::vector<double> log_weights_;
  double sum_of_weights_ = 0;
};

/// A width for the kernels of choices: the share that one further observation of each value would
/// have.
double choice_width(const Axis& axis, std::size_t kernels);

/// Draws a normal number that lies between 0 and 1; `mean` does.
double cut_normal(double mean, double deviation, core::Random& random);

}  // namespace fleetfit::tune
