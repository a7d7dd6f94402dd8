#include "fleetfit/tune/sampler.h"

#include "tune/samplers/samplers.h"
#include "tune/samplers/tpe.h"

namespace fleetfit::tune {

std::unique_ptr<Sampler> make_sampler(const Parameters& parameters, const SamplerOptions& options) {
  switch (options.kind) {
    case SamplerKind::random:
      return make_random(parameters);
    case SamplerKind::grid:
      return make_grid(parameters);
    case SamplerKind::bohb:
      return make_bohb(parameters, options);
    case SamplerKind::nsga2:
      return make_nsga2(parameters, options);
    case SamplerKind::tpe:
      break;
  }
  return make_tpe(parameters, options);
}

}  // namespace fleetfit::tune
