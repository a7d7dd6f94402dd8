#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "fleetfit/core/csv.h"
#include "fleetfit/learned/device_features.h"
#include "fleetfit/learned/feature_scaling.h"

namespace {

using namespace fleetfit;

/// What was read can be written and read again, and becomes finite inputs.
void use(const learned::DeviceFeatures& features) {
  const auto text = learned::format_device_features(features);
  const auto csv = core::parse_csv(text, "again");
  if (!csv) std::abort();
  const auto again = learned::device_features_of(*csv, "again");
  if (!again || learned::format_device_features(*again) != text) std::abort();
  const auto scaling = learned::FeatureScaling::fit(features);
  if (!scaling) return;
  const auto inputs = scaling->scale(features);
  if (!inputs) return;
  for (const double input : *inputs)
    if (!std::isfinite(input)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto csv = core::parse_csv(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!csv) return 0;
  if (const auto features = learned::device_features_of(*csv, "fuzz")) use(*features);
  if (const auto sheet = learned::sheet_features(*csv, "fuzz")) use(sheet->features);
  return 0;
}
