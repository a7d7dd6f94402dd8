#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/store/study_records.h"
#include "fleetfit/study/place.h"

/// Studies of other programs, brought into the store.
namespace fleetfit::study {

struct ImportOptions {
  std::filesystem::path file = {};  ///< of Optuna 3, on SQLite
  std::string study = {};           ///< its name there; may be empty if there is one only
  std::string name = {};            ///< its new name; empty: the same
  /// The program that trains, by the trial protocol; empty: trials are evaluated by ask and tell.
  std::vector<std::string> command = {};
};

struct ImportedStudy {
  std::string name = {};
  std::string definition = {};  ///< the study file that was made for it
  store::TrialCounts trials = {};
  /// Trials that were running or waiting, or do not have the parameters of the others: the rest is
  /// numbered again, in the same order.
  std::int64_t left_out = 0;
};

/// Brings a study of Optuna into the store, so that `tune`, `ask` and `tell` go on with it:
/// complete trials as finished, pruned ones as stopped, failed ones as failed. A value that is
/// maximized is the accuracy, one that is minimized the loss; several are called value_0, value_1
/// and so on. A parameter that only some trials have is made to depend on a choice that separates
/// them. Fails as `store::read_optuna_study` does, and with `invalid_input` if there are
/// several studies and none is named, if no trial has parameters, and if there is a study of that
/// name in the store.
Result<ImportedStudy> import_optuna_study(const StudyPlace& place, const ImportOptions& options);

nlohmann::ordered_json to_json(const ImportedStudy& study);

}  // namespace fleetfit::study
