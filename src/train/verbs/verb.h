#pragma once

#include <CLI/App.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/interrupt.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/train/images.h"
#include "fleetfit/train/training.h"

/// The verbs of fleetfit-train, one file for each.
namespace fleetfit::train {

/// Flags that every verb takes.
struct CommonFlags {
  bool json = false;
  bool quiet = false;
  int threads = 0;
  std::uint64_t seed = 1;
  /// Not empty: a trial of a study, which speaks its protocol and leaves what it would print here.
  std::string trial_summary;
  bool is_check = false;  ///< the flags are good, if this is read: there is nothing to do
};

/// What the verb that was chosen does; gives the exit status.
using Action = std::function<Result<int>()>;

/// Each adds its verb, which sets `action`. Flags live as long as the verb.
void add_mlp(CLI::App& program, Action& action);
void add_graph_network(CLI::App& program, Action& action);
void add_learned(CLI::App& program, Action& action);
void add_train(CLI::App& program, Action& action);
void add_elastify(CLI::App& program, Action& action);
void add_workload(CLI::App& program, Action& action);

/// --json, --quiet, --threads, --seed.
void add_common_flags(CLI::App& verb, CommonFlags& flags);

/// --as-trial and --check-flags, for verbs that a study may run.
void add_trial_flags(CLI::App& verb, CommonFlags& flags);

/// --compute.
void add_compute_flag(CLI::App& verb, Compute& compute);

/// A line of the trial protocol, which somebody waits for.
void say(const nlohmann::json& document);

/// What a verb has done: `document` or `text`, as the flags ask, printed or left for the study that
/// it is a trial of, which also gets the numbers of `result`.
Status tell(const CommonFlags& flags, const nlohmann::ordered_json& document,
            const std::string& text, const nlohmann::json& result);

/// What a verb works with, for as long as it works.
class Work {
 public:
  explicit Work(const CommonFlags& flags);

  bool is_interrupted() const { return interrupt_.token().stop_requested(); }
  double elapsed_s() const { return std::chrono::duration<double>(clock_.now() - start_).count(); }

  TrainingContext context() {
    return {.pool = pool_, .clock = clock_, .progress = *progress_, .stop = interrupt_.token()};
  }

  /// The exit status of work that was done, or interrupted, which is then said.
  int finish(const std::string& interrupted) const;

 private:
  core::Interrupt interrupt_;  // first, so that threads inherit that they do not see signals
  core::SystemClock clock_;
  std::chrono::nanoseconds start_;
  core::ThreadPool pool_;
  std::unique_ptr<core::Progress> progress_;
};

/// Puts a document on the standard output.
void print(const nlohmann::ordered_json& document);

/// A data set's images to learn from, to choose by and to test on.
struct OpenedSplits {
  std::unique_ptr<data::Dataset> train;
  std::unique_ptr<data::Dataset> validation;
  std::unique_ptr<data::Dataset> test;

  ImageSplits view() const { return {.train = *train, .validation = *validation, .test = *test}; }
};

Result<OpenedSplits> open_splits(const std::string& spec);

/// `invalid_input` if no file can be there, which one would rather hear before hours of work.
Status check_output(const std::filesystem::path& output);

}  // namespace fleetfit::train
