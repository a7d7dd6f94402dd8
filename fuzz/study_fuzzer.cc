#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "fleetfit/core/json.h"
#include "fleetfit/core/random.h"
#include "fleetfit/tune/budget.h"
#include "fleetfit/tune/study.h"

namespace {

using namespace fleetfit;

// What is drawn has to come back from its JSON.
void use_parameters(const tune::Parameters& parameters) {
  core::Random random(1);
  const tune::Point point = parameters.sample(random);
  const auto json = nlohmann::json(parameters.to_json(point));
  const auto back = parameters.from_json(core::JsonView(json, "fuzz"));
  if (!back || !tune::same_point(*back, point)) std::abort();
  static_cast<void>(parameters.count());
}

}  // namespace

// A study either has a meaning in all of its parts, or is refused with one line that names file and
// line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto study = tune::parse_study(text, "fuzz.yaml");
  if (!study) {
    const std::string& message = study.error().message;
    if (!message.starts_with("fuzz.yaml:") || message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  use_parameters(study->parameters);
  if (study->inference) use_parameters(study->inference->parameters);
  const auto levels = tune::levels(study->budget);
  if (levels.empty() || levels.back().epochs < 1) std::abort();
  return 0;
}
