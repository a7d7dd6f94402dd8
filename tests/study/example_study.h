#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fleetfit/store/store.h"

/// Studies as tuning leaves them behind, made up from a seed.
namespace fleetfit::study {

/// One objective, two devices, six parameters (one of them conditional), limits, levels.
inline constexpr std::string_view kExampleStudy = R"(name: fashion
parameters:
  model: {layers: {values: [18, 34, 50]}, width: {values: [0.5, 0.75, 1.0]}}
  training:
    batch_size: {range: [32, 512], integer: true, log: true}
    learning_rate: {range: [1.0e-4, 1.0e-1], log: true}
    optimizer: {values: [sgd, adam]}
    momentum: {range: [0.5, 0.99], when: {optimizer: [sgd]}}
  system: {threads: {values: [1, 2]}}
inference:
  devices: [local, phone]
  parameters: {batch_size: {range: [1, 32], integer: true}, cores: {values: [1, 2]}}
  scenario: {kind: server, samples: 32, period_ms: 1000}
objective: {kind: ratio, of: time}
constraints: {accuracy: 0.6, latency_ms: {phone: 60}}
budget: {kind: multi, min_epochs: 2, max_epochs: 16, min_data: 0.125, eta: 2, max_trials: 1000000}
algorithm: {model: bohb, inference: grid}
)";

/// The same with a Pareto set of accuracy and latency.
std::string several_objectives();

struct ExampleTrials {
  std::int64_t count = 200;
  std::uint64_t seed = 1;
};

/// Puts the study, trials in all states and answers of inference tuning into the store.
void fill_study(store::Store& store, std::string_view definition, const ExampleTrials& trials);

}  // namespace fleetfit::study
