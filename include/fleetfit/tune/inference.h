#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/tune/scenario.h"
#include "fleetfit/tune/study.h"

/// Inference tuning: how a network is best run on a device in a scenario. Knows neither models nor
/// devices: whoever asks gives a function that measures or predicts.
namespace fleetfit::tune {

/// One way to run a network.
struct InferenceSetting {
  std::int64_t batch = 1;
  std::optional<std::int64_t> cores = std::nullopt;  ///< how many; nothing: as the device has
  std::optional<std::int64_t> threads = std::nullopt;
  std::optional<std::string> precision = std::nullopt;

  bool operator==(const InferenceSetting&) const = default;
};

/// What is known of one way.
struct InferenceCost {
  BatchCost cost = {};
  double spread_ms = 0;            ///< half of the 95 % interval of the latency
  bool predicted = false;          ///< by a predictor; otherwise measured
  std::string energy_source = {};  ///< "measured", "modelled" or ""
};

struct InferenceTrial {
  InferenceSetting setting = {};
  std::optional<InferenceCost> cost = std::nullopt;
  Response response = {};   ///< in the scenario; if there is a cost
  std::string reason = {};  ///< why there is no cost
};

/// The answer: the best setting, and everything that was tried.
struct InferenceResult {
  std::optional<std::size_t> best = std::nullopt;  ///< index in `trials`; nothing if all failed
  std::vector<InferenceTrial> trials = {};
  double elapsed_s = 0;
};

using PriceInference = std::function<Result<InferenceCost>(const InferenceSetting&)>;

struct InferenceTuning {
  const InferenceStudy& study;
  SamplerKind algorithm = SamplerKind::grid;
  std::size_t max_settings = 64;  ///< samplers other than the grid try so many at most
  std::uint64_t seed = 1;
};

/// Fails with `cancelled` only; a setting that cannot be priced is a trial with a reason. Batches
/// between those that were priced cost what a line between them says.
Result<InferenceResult> tune_inference(const InferenceTuning& tuning, const PriceInference& price,
                                       const std::stop_token& stop);

nlohmann::ordered_json to_json(const InferenceResult& result);
Result<InferenceResult> inference_result_from_json(const core::JsonView& json);

/// The same for the same question: parameters, scenario and goal. With a network's structure and a
/// device's fingerprint it is the key in the historical data base.
std::string question_key(const InferenceStudy& study, SamplerKind algorithm);

}  // namespace fleetfit::tune
