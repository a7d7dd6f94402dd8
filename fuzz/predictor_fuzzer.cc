#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "fleetfit/core/json.h"
#include "fleetfit/predict/kernel_predictor.h"

namespace {

/// A kernel of every kind, some of them far from all that was measured.
std::vector<fleetfit::cost::KernelFeatures> some_kernels() {
  std::vector<fleetfit::cost::KernelFeatures> kernels;
  for (const auto kind : fleetfit::cost::kernel_kinds()) {
    for (const double value : {0.0, 1.0, 1e3, 1e12}) {
      const auto count = fleetfit::cost::feature_names(kind).size();
      kernels.push_back({std::string(kind), std::vector<double>(count, value)});
    }
  }
  return kernels;
}

}  // namespace

// Whatever was read prices every kernel, and can be written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleetfit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = core::parse_json(text, "fuzz");
  if (!json) return 0;
  const auto predictor = predict::kernel_predictor_from_json(core::JsonView(*json, "fuzz"));
  if (!predictor) return 0;
  static const auto kernels = some_kernels();
  const auto price = (*predictor)->price(kernels);
  if (!price) return 0;
  for (const auto& kernel : price->kernels) {
    if (!(kernel.ms > 0)) std::abort();
  }
  static_cast<void>((*predictor)->to_json());
  return 0;
}
