#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/study/tuning.h"

/// Use case: one long training (`train`, `elastify`) as a study of one trial. It then runs here or
/// on a cluster alike, is taken over when its worker dies, and its progress, time and energy are in
/// the store, where `study show` and the server's page find them.
namespace fleetfit::study {

struct Training {
  std::string verb = {};                ///< of fleetfit-train
  std::vector<std::string> flags = {};  ///< of the verb, as the user wrote them
  std::filesystem::path output = {};    ///< the file that it makes
  std::string resources = {};           ///< as in a study file; empty: none are asked for
};

/// The study file of a training; the same for the same training. Fails with `not_found` if
/// fleetfit-train is not installed, with `invalid_input` on resources that are none.
Result<std::string> study_of_training(const Training& training);

/// Runs the study of a training, from where an earlier process left it, and gives what the training
/// reports. One that was done before is done again. The request is that of `study_of_training`.
///
/// Fails with `device_failed` and the reason if the training fails, with `cancelled` when stopped,
/// with `invalid_input` if another training of the same output was begun and not ended, and as
/// `tune_study` does.
Result<std::string> run_training(const StudyPlace& place, const Training& training,
                                 TuneRequest request, const TuningParts& parts,
                                 const std::stop_token& stop);

}  // namespace fleetfit::study
