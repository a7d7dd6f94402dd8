#include "tune/samplers/samplers.h"

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

std::unique_ptr<Sampler> make_random(const Parameters& parameters) {
  return std::make_unique<RandomSampler>(parameters);
}

}  // namespace fleetfit::tune
