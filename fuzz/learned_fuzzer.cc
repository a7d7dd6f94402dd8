#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/learned/answer.h"
#include "fleetfit/learned/model.h"

// Whatever was read answers for a device with a design of its space.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleetfit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = core::parse_json(text, "fuzz");
  if (!json) return 0;
  const auto model = learned::model_from_json(core::JsonView(*json, "fuzz"));
  if (!model) return 0;
  std::vector<double> features(model->parts().device.size(), 3.0);
  features.back() = NAN;
  const auto device = model->parts().device.read(features);
  if (!device) return 0;
  const learned::DeviceJudge judge(*model, *device);
  learned::Goal goal{.limits = {5.0}};
  goal.limits.resize(model->parts().costs.size(), INFINITY);
  const auto answer = learned::answer(judge, goal, {.beam = 2, .weight_steps = 1});
  if (!model->space().check(answer.design)) std::abort();
  return 0;
}
