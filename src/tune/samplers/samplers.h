#pragma once

#include <memory>

#include "fleetfit/tune/sampler.h"

/// One function for each file of this folder that holds a sampler. The parameters are borrowed.
namespace fleetfit::tune {

std::unique_ptr<Sampler> make_grid(const Parameters& parameters);
std::unique_ptr<Sampler> make_bohb(const Parameters& parameters, const SamplerOptions& options);
std::unique_ptr<Sampler> make_nsga2(const Parameters& parameters, const SamplerOptions& options);

}  // namespace fleetfit::tune
