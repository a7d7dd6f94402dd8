#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/store/study_records.h"
#include "fleetfit/study/place.h"
#include "fleetfit/tune/executor.h"
#include "fleetfit/tune/study.h"
#include "fleetfit/tune/trial_process.h"

/// Tuning a study: one process, the conductor, decides; workers train; inference is tuned meanwhile
/// (docs/tuning.md). Any of them may be killed at any time.
namespace fleetfit::study {

/// How long a store may be away. A server or a file system is back by then, or somebody has to look
/// at it.
inline constexpr std::chrono::minutes kStorePatience{10};

struct TuneRequest {
  tune::Study study = {};
  std::string definition = {};  ///< the study file's text
  bool resume = false;          ///< go on with the study if there is one
  std::size_t workers = 1;
  /// Starts a worker, which adds `--as NAME`; see `work_on_study`.
  std::vector<std::string> worker_command = {};
  std::filesystem::path folder = {};  ///< of all studies of the store: checkpoints and logs
  std::chrono::milliseconds lease{10'000};
  std::chrono::milliseconds store_patience = kStorePatience;
};

struct TuneSummary {
  bool done = false;  ///< false if it was stopped
  store::TrialCounts trials = {};
};

/// What runs the workers, and what hears how it goes. Borrowed.
struct TuningParts {
  tune::Executor& executor;
  core::Progress& progress;
  /// Hears what goes wrong while nobody wants to see progress; empty: `progress` does.
  std::function<void(std::string_view)> warn = {};
};

/// Creates the study, or goes on with it, until it is done or `stop` asks for it. Whatever was
/// decided and reached is in the store.
///
/// Fails with `invalid_input` if there is a study of that name and `resume` is not set, if the file
/// has changed since it was begun, if another process tunes it, and if the store is not one that
/// workers can open. A store that is gone, or away for longer than `store_patience`, ends it with
/// `io`.
Result<TuneSummary> tune_study(const StudyPlace& place, const TuneRequest& request,
                               const TuningParts& parts, const std::stop_token& stop);

struct ClusterRequest {
  std::string work = {};              ///< what the jobs do; the same for the same work
  std::filesystem::path folder = {};  ///< that all nodes see; logs are in its folder `slurm`
  tune::Resources resources = {};
  std::size_t most_at_once = 0;  ///< 0: as many as the cluster gives
};
/// Jobs of a Slurm cluster; the others as below.
std::unique_ptr<tune::Executor> make_slurm_executor(const ClusterRequest& request,
                                                    const core::Clock& clock,
                                                    core::Progress& progress);

/// Workers are jobs of a Slurm cluster with the resources that the study asks for; their logs are
/// in `slurm` of the folder. Clock and progress are borrowed; the progress hears when the cluster
/// is waited for.
std::unique_ptr<tune::Executor> make_slurm_executor(const TuneRequest& request,
                                                    const core::Clock& clock,
                                                    core::Progress& progress);

struct WorkRequest {
  std::string study = {};
  std::string as = "worker";  ///< the beginning of its name
  std::filesystem::path folder = {};
  std::chrono::milliseconds lease{10'000};
  std::chrono::milliseconds store_patience = kStorePatience;
  /// Ends when there was nothing to do for so long.
  std::optional<std::chrono::seconds> idle_limit = std::nullopt;
  /// A descriptor whose end of input means that the process which started the worker has ended; -1:
  /// none.
  int parent = -1;
};

/// What the verb `study work` does: works on a study until it is done, or the parent has ended.
Status work_on_study(const StudyPlace& place, const WorkRequest& request,
                     const std::stop_token& stop);

/// Where checkpoints and logs are kept if nothing else is said: beside the data base. Fails with
/// `invalid_input` for a store that only one process sees.
Result<std::filesystem::path> default_study_folder(std::string_view store_url);

/// The folder of one study: another one of the same name has another.
std::filesystem::path folder_of_study(const std::filesystem::path& folder,
                                      const store::StudyRecord& study);

/// fleetfit-train with a verb, as a trial starts it. `not_found` if it is not installed.
Result<std::vector<std::string>> trainer_command(const std::string& verb);

/// What trains: the study's command, or fleetfit-train for built-in workloads.
Result<std::vector<std::string>> trial_command(const tune::Workload& workload);

}  // namespace fleetfit::study
