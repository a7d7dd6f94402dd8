#pragma once

#include <cstddef>
#include <memory>

#include "fleetfit/tune/sampler.h"

namespace fleetfit::tune {

/// Chosen on the functions that bench/tune_functions.json calls "other".
struct TpeOptions {
  std::size_t startup = 10;     ///< observations before there is a model
  double good_share = 0.15;     ///< of the observations
  std::size_t good_limit = 25;  ///< never more of them
  std::size_t candidates = 24;
  double uniform_weight = 1;  ///< of a uniform kernel in each density; an observation has about 1
  double bad_width = 0.2;     ///< of the kernels of bad observations, while there are few
  double smallest_width = 0.01;
};

/// Tree-structured Parzen estimators over all parameters at once: a density of the good
/// observations, the better ones counting more, and one of the bad; of points drawn from the first,
/// the one where the ratio of the two is largest. Pending points count as bad.
std::unique_ptr<Sampler> make_tpe(const Parameters& parameters, const SamplerOptions& options,
                                  const TpeOptions& tpe = {});

}  // namespace fleetfit::tune
