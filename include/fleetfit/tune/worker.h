#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/result.h"
#include "fleetfit/store/study_store.h"
#include "fleetfit/tune/study.h"
#include "fleetfit/tune/trial_process.h"

/// What a worker does: it takes trials of a study from the store and trains them, one level at a
/// time, until the study is done.
namespace fleetfit::tune {

struct WorkerOptions {
  std::string name = {};                  ///< different for each worker that ever was
  std::vector<std::string> command = {};  ///< that trains
  /// Where checkpoints and logs are: TRIAL/ and TRIAL.log.
  std::filesystem::path folder = {};
  std::vector<int> cores = {};  ///< of its trials; empty: its own
  /// Without a sign of life for so long, and once more for clocks that differ, its trial is given
  /// to another worker.
  std::chrono::milliseconds lease{10'000};
  /// Ends when there was nothing to take for so long; absent: never.
  std::optional<std::chrono::seconds> idle_limit = std::nullopt;
  /// How long the store may be away; absent: for ever.
  std::optional<std::chrono::milliseconds> store_patience = std::nullopt;
  /// A trial whose workers die so often while they run it fails.
  std::int64_t max_deaths = 20;
  TrialProcessOptions process = {};
};

/// What a worker cannot do itself. Each may be empty.
struct WorkerHooks {
  /// The identity of the network in a model file.
  std::function<Result<std::string>(const std::filesystem::path&)> structure_of = {};
  std::function<void(std::string_view)> say = {};
};

/// Comes back when the study is done, or when `stop` asks for it: then the trial that it runs is
/// stopped and given back. A store or folder that cannot be written is waited for. Fails if the
/// study is not there (any more), if the store is damaged or gone, and if it is away for too long.
Status work_on_study(store::StudyStore& store, const Study& study, const core::Clock& clock,
                     const WorkerOptions& options, const WorkerHooks& hooks,
                     const std::stop_token& stop);

/// The date for questions of leases.
///
/// Clocks of machines differ, and may be set while a study runs. So a lease counts as run out only
/// when it has been over for its own length, and not soon after this machine's clock has jumped.
class LeaseClock {
 public:
  /// The clock is borrowed.
  LeaseClock(const core::Clock& clock, std::chrono::milliseconds lease);

  /// Leases that ended before have run out.
  store::Time run_out_before();
  /// The end of a lease that begins now.
  store::Time end_of_lease() const;
  store::Time date() const;
  std::chrono::nanoseconds now() const { return clock_.now(); }

 private:
  const core::Clock& clock_;
  std::chrono::milliseconds lease_;
  std::chrono::nanoseconds last_now_;
  std::chrono::system_clock::time_point last_date_;
  std::chrono::nanoseconds quiet_until_{0};
};

}  // namespace fleetfit::tune
