#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/tune/history.h"
#include "fleetfit/tune/scenario.h"
#include "fleetfit/tune/study.h"

/// Inference tuning: how a network is best run on a device in a scenario. Knows neither models nor
/// devices: the caller gives a function that measures or predicts.
namespace fleetfit::tune {

/// One way to run a network.
struct InferenceSetting {
  std::int64_t batch = 1;
  std::optional<std::int64_t> cores = std::nullopt;  ///< how many; nothing: as the device has
  std::optional<std::int64_t> threads = std::nullopt;
  std::optional<std::string> precision = std::nullopt;

  bool operator==(const InferenceSetting&) const = default;
};
core::Fields fields_of(const InferenceSetting*);

/// What is known of one way.
struct InferenceCost {
  BatchCost cost = {};
  double spread_ms = 0;            ///< half of the 95 % interval of the latency
  bool predicted = false;          ///< by a predictor; otherwise measured
  std::string energy_source = {};  ///< "measured", "modelled" or ""
  std::string note = {};           ///< what a reader should know: "unstable: …"; may be ""

  bool operator==(const InferenceCost&) const = default;
};

struct InferenceTrial {
  InferenceSetting setting = {};
  std::optional<InferenceCost> cost = std::nullopt;
  Response response = {};   ///< in the scenario; if there is a cost
  std::string reason = {};  ///< why there is no cost
  /// False: priced only to know what batches cost that are not full.
  bool asked = true;

  bool operator==(const InferenceTrial&) const = default;
};

/// The answer: the best setting, and everything that was priced.
struct InferenceResult {
  std::optional<std::size_t> best = std::nullopt;  ///< index in `trials`; nothing if all failed
  std::vector<InferenceTrial> trials = {};         ///< in the order of pricing
  std::size_t settings =
      0;  ///< that the question has, most of which need not be priced; 0: endless
  double elapsed_s = 0;

  bool operator==(const InferenceResult&) const = default;
};

/// With a rhythm: as it costs when runs and pauses take turns so; without one, run after run.
using PriceInference =
    std::function<Result<InferenceCost>(const InferenceSetting&, const std::optional<Rhythm>&)>;

struct InferenceTuning {
  const InferenceStudy& study;
  SamplerKind algorithm = SamplerKind::grid;
  std::size_t max_settings = 64;  ///< samplers other than the grid try so many at most
  std::uint64_t seed = 1;
};

/// Fails with `invalid_input`, naming the parameter, on one that inference does not have
/// (batch_size, cores and threads are whole numbers from 1, precision is fp32 or int8) and on
/// conditions.
Status check_inference_parameters(const Parameters& parameters);

/// Fails as `check_inference_parameters` does and with `cancelled`; a setting that cannot be priced
/// is a trial with a reason.
///
/// The grid does not price every batch of a long list: it prices about those that are powers of
/// two, takes what a line between them says for the others, and prices around the best until the
/// best is one that was priced. In a single stream no batch is ever more than one sample, so only
/// that is priced; of a server's batches, none larger than a query.
///
/// Best is what meets the goal best in the scenario: the shortest mean response (offline: the
/// highest throughput), the highest throughput that could be had, the least energy per sample.
/// Settings that are saturated come after all others, those without energy cannot be the best for
/// energy. Of equals, the one with fewer cores, fewer threads, a smaller batch. The best is
/// measured once more and judged by that, as the best of many measurements is one that was lucky;
/// what is reported of the chosen one is the middle of three more that chose nothing.
/// Where a scenario has pauses, these measurements have them too, as a run after a pause takes
/// longer: caches are cold, clocks are low.
Result<InferenceResult> tune_inference(const InferenceTuning& tuning, const PriceInference& price,
                                       const std::stop_token& stop);

/// What a batch of so many samples costs with the cores, threads and precision of a setting that
/// was priced, as the tuning saw it. Up to the largest batch that was priced.
std::function<BatchCost(std::int64_t)> batch_costs(const InferenceResult& result,
                                                   const InferenceSetting& setting);

/// The best setting as the trials of a study have it; nothing if there is none.
std::optional<Inference> recommendation(const InferenceResult& result, std::string device);

/// {"batch_size", "cores", "threads", "precision"}, what is set of them.
/// "batch 8, 2 cores, int8".
std::string describe(const InferenceSetting& setting);

nlohmann::ordered_json to_json(const InferenceSetting& setting);
nlohmann::ordered_json to_json(const InferenceResult& result);
Result<InferenceResult> inference_result_from_json(const core::JsonView& json);

/// The same for the same question: parameters, scenario and goal. With a network's structure and a
/// device's fingerprint it is the key in the historical data base.
std::string question_key(const InferenceStudy& study, SamplerKind algorithm);

}  // namespace fleetfit::tune
