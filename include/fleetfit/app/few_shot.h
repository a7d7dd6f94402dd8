#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/space.h"
#include "fleetfit/transfer/few_shot.h"

/// A new device predicted from a table of known ones and a few measurements.
namespace fleetfit::app {

struct FewShotRequest {
  std::filesystem::path table = {};
  std::string space = {};
  std::vector<std::string> references = {};  ///< columns of the table
  std::string target = {};                   ///< a column, too
  std::size_t samples = 10;                  ///< measurements on the target
  std::size_t reference_samples = 900;
  std::size_t trials = 1;  ///< with the seeds seed, seed + 1, …
  std::uint64_t seed = 1;
  int threads = 1;
};

/// Predictions held against the target's whole column.
struct FewShotTrial {
  std::uint64_t seed = 0;
  double srcc = 0;
  double mape = 0;        ///< percent, of designs that connect their input with their output
  double coverage90 = 0;  ///< share of other designs than the samples that lie in their interval
};

/// What is reported of one trial is that of the first.
struct FewShotReport {
  const space::Space* space = nullptr;
  std::string target = {};
  std::vector<std::string> references = {};
  std::size_t reference_samples = 0;
  std::size_t measurements = 0;  ///< on the target that were used
  /// None if most of the target's cells are empty: then it is a new device, all its cells are
  /// used, and there is nothing to compare with.
  std::vector<FewShotTrial> trials = {};
  std::vector<std::string> samples_chosen = {};
  std::vector<std::string> measure_next = {};  ///< none if it is enough
  /// None if too few designs were measured to say anything.
  std::optional<transfer::FewShotVerdict> verdict = {};
  space::Population designs = space::Population(1);
  std::vector<transfer::PredictedLatency> predictions = {};  ///< of each of the designs

  /// Means over all trials; NaN without any.
  FewShotTrial mean() const;
};

/// Fails with `invalid_input` or `not_found`, naming the file, column or flag.
Result<FewShotReport> transfer_few_shot(const FewShotRequest& request);

nlohmann::ordered_json to_json(const FewShotReport& report);

/// Writes what `to_json` gives and all predictions; to a file that ends in .csv a table of the
/// predictions that can be a source of latencies (docs/formats/fewshot.md).
Status write_few_shot(const FewShotReport& report, const std::filesystem::path& path);

}  // namespace fleetfit::app
