#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/store/study_store.h"
#include "fleetfit/tune/history.h"
#include "fleetfit/tune/inference.h"
#include "fleetfit/tune/study.h"

/// From what the store keeps of a study to what tuning makes of it.
namespace fleetfit::study {

/// How the networks of a study are best run on its devices, out of the historical data base.
class KnownInference {
 public:
  /// Everything that answers the study's question. Nothing if it does not ask one.
  static Result<KnownInference> load(store::StudyStore& store, const tune::Study& study);

  /// The answer for a network on a device; nothing until it is found.
  const tune::InferenceResult* find(std::string_view structure, std::string_view device) const;

  /// The best setting on each device of the study, in its order; nothing until all are known, or if
  /// nothing could be priced on one.
  std::optional<std::vector<tune::Inference>> of(const std::string& structure) const;

 private:
  void add_recommendations(const tune::Study& study);

  std::map<std::pair<std::string, std::string>, tune::InferenceResult> answers_;
  std::unordered_map<std::string, std::vector<tune::Inference>> recommendations_;
};

/// The present state of a trial without its point, which takes longest to read and does not matter
/// for its objective.
Result<tune::Trial> results_from_record(const tune::Study& study, const store::TrialRecord& record,
                                        const KnownInference& known);

/// The present state of a trial. Fails with `invalid_input`, naming study and trial, if its
/// parameters are not those of the study.
Result<tune::Trial> trial_from_record(const tune::Study& study, const store::TrialRecord& record,
                                      const KnownInference& known);

}  // namespace fleetfit::study
