#pragma once

#include <cstddef>
#include <memory>

#include "fleetfit/tune/sampler.h"

namespace fleetfit::tune {

/// Defaults were chosen on functions that bench/tune_bench calls "other", not on its benchmark.
struct TpeOptions {
  std::size_t startup = 10;  ///< observations before there is a model
  double good_share = 0.1;
  std::size_t good_limit = 25;
  std::size_t candidates = 24;
  std::size_t refinements = 0;
  int good_rule = 0;
  int bad_rule = 0;
  double good_factor = 1;
  double bad_factor = 1;
  double smallest_width = 0.01;
  double prior = 1;
  double rank_weight = 0;
  double choice_width = 1;
  double wobble = 0;
  int spread = 0;
  double startup_dims = 0;
  int sqrt_gamma = 0;
  double random_share = 0;
};

std::unique_ptr<Sampler> make_tpe(const Parameters& parameters, const SamplerOptions& options,
                                  const TpeOptions& tpe = {});

}  // namespace fleetfit::tune
