#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/tune/parameters.h"
#include "fleetfit/tune/study.h"

/// Which point to try next.
namespace fleetfit::tune {

/// A trial at the end of a level.
struct Observation {
  std::size_t trial = 0;
  Point point = {};
  std::size_t level = 0;
  std::vector<double> values = {};  ///< to be minimized
  double violation = 0;             ///< of the study's limits; 0: none is broken
};

struct SamplerOptions {
  SamplerKind kind = SamplerKind::tpe;
  std::size_t objectives = 1;
  std::size_t levels = 1;
};

/// Its suggestions depend on what it has heard, in that order, and on the random numbers it is
/// given; with one objective, the order does not matter. Telling takes logarithmic time and
/// suggesting a time that does not grow with the number of observations.
class Sampler {
 public:
  virtual ~Sampler() = default;

  virtual void tell(const Observation& observation) = 0;

  /// A point for the trial of that number (from 0). `pending` are points that were started and not
  /// reported yet; a good sampler does not suggest them again. Active parameters have a value,
  /// others NaN.
  virtual Point suggest(std::size_t trial, std::span<const Point> pending,
                        core::Random& random) = 0;
};

/// random; grid (ranges cut into ten; goes through the grid in an order that covers it evenly, and
/// then draws at random); tpe (multivariate tree-structured Parzen estimators, mixed and
/// conditional parameters, several objectives by non-dominated rank); bohb (kernel densities of the
/// highest level that has enough observations, a third at random); nsga2. The parameters are
/// borrowed.
std::unique_ptr<Sampler> make_sampler(const Parameters& parameters, const SamplerOptions& options);

}  // namespace fleetfit::tune
