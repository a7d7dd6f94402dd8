#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fleetfit/core/random.h"
#include "tune/samplers/axes.h"

namespace fleetfit::tune {

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

  /// A place on one axis alone, whatever the others are.
  double sample_place(std::size_t axis, core::Random& random) const;

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

/// Draws a normal number that lies between 0 and 1; `mean` does.
double cut_normal(double mean, double deviation, core::Random& random);

}  // namespace fleetfit::tune
