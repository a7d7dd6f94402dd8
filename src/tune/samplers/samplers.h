#pragma once

#include <memory>

#include "fleetfit/tune/sampler.h"

/// The samplers that have a file of their own. The parameters are borrowed.
namespace fleetfit::tune {

std::unique_ptr<Sampler> make_tpe(const Parameters& parameters, const SamplerOptions& options);
std::unique_ptr<Sampler> make_bohb(const Parameters& parameters, const SamplerOptions& options);
std::unique_ptr<Sampler> make_nsga2(const Parameters& parameters, const SamplerOptions& options);

}  // namespace fleetfit::tune
