#include "fleetfit/tune/sampler.h"

#include "tune/samplers/samplers.h"
#include "tune/samplers/tpe.h"

namespace fleetfit::tune {
namespace {

class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(const Parameters& parameters) : parameters_(&parameters) {}

  void tell(const Observation& /*observation*/) override {}

  Point suggest(std::size_t /*trial*/, std::span<const Point> /*pending*/,
                core::Random& random) override {
    return parameters_->sample(random);
  }

 private:
  const Parameters* parameters_;
};

}  // namespace

std::unique_ptr<Sampler> make_sampler(const Parameters& parameters, const SamplerOptions& options) {
  switch (options.kind) {
    case SamplerKind::random:
      return std::make_unique<RandomSampler>(parameters);
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
