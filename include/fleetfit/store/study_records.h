#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/store/records.h"

/// What is kept of tuning studies. The rules of records.h hold.
namespace fleetfit::store {

struct StudyRecord {
  std::string name = {};        ///< not empty; there is one study of a name
  std::string definition = {};  ///< the study file's text
  std::uint64_t seed = 1;
  bool done = false;  ///< all of its trials have ended and no more are to come
  Time created = {};
  double tuning_s = 0;                            ///< that tuners have worked on it
  std::optional<double> tuning_j = std::nullopt;  ///< energy of its trials

  bool operator==(const StudyRecord&) const = default;
};
core::Fields fields_of(const StudyRecord*);

/// See tune/history.h.
enum class TrialState : std::uint8_t { queued, running, paused, finished, stopped, failed };

/// The names of the values.
core::Names names_of(TrialState);

/// Whether it is finished, stopped or failed: no worker will take the trial again.
bool has_ended(TrialState state);

/// A trial at the end of a level.
struct LevelRecord {
  std::int64_t level = 0;
  std::int64_t epochs = 0;   ///< the budget
  double data_fraction = 1;  ///< the budget; 0 to 1
  double accuracy = 0;
  std::optional<double> loss = std::nullopt;
  double training_s = 0;  ///< of this level alone
  std::optional<double> training_j = std::nullopt;
  std::string metrics = "{}";       ///< JSON: further numbers of its result
  std::string epoch_values = "[]";  ///< JSON: accuracy after each epoch
  std::string worker = {};
  Time started = {};
  Time ended = {};

  bool operator==(const LevelRecord&) const = default;
};
core::Fields fields_of(const LevelRecord*);

struct TrialRecord {
  std::int64_t number = 0;    ///< from 0, without gaps
  std::string params = "{}";  ///< JSON
  std::int64_t bracket = 0;
  std::int64_t level = 0;  ///< that it is in, or has ended last
  TrialState state = TrialState::queued;
  std::string reason = {};     ///< of stopped and failed; if it has failed, not empty
  std::string structure = {};  ///< identity of the network; empty until it is known
  std::string model_file = {};
  std::int64_t attempts = 0;  ///< how often a worker took it
  std::string worker = {};    ///< that has it, or had it last
  /// While it is running; absent then, it never runs out (somebody asked for it by hand).
  std::optional<Time> lease_until = std::nullopt;
  bool stop_requested = false;  ///< the worker is to end it, for `reason`
  std::string progress = {};    ///< while it is running: how far it is, in its words; one line
  /// The study's objective at the highest level so far, the first one to be minimized, if it is
  /// known and the study's limits hold: what `best_trials` goes by.
  std::optional<double> score = std::nullopt;
  std::vector<LevelRecord> levels = {};  ///< that it has ended, lowest first
  /// Given by the store; increases with every change of any trial of the study but for the renewal
  /// of leases and the progress that comes with it.
  std::int64_t change = 0;

  bool operator==(const TrialRecord&) const = default;
};
core::Fields fields_of(const TrialRecord*);

/// How many trials there are, by state.
struct TrialCounts {
  std::int64_t queued = 0;
  std::int64_t running = 0;
  std::int64_t paused = 0;
  std::int64_t finished = 0;
  std::int64_t stopped = 0;
  std::int64_t failed = 0;

  std::int64_t all() const { return queued + running + paused + finished + stopped + failed; }
  bool operator==(const TrialCounts&) const = default;
};
core::Fields fields_of(const TrialCounts*);

/// How a network is best run on a device: found once, kept for ever, shared by all studies.
struct InferenceRecord {
  std::string structure = {};           ///< identity of the network; not empty
  std::string device_fingerprint = {};  ///< or what stands for it; not empty
  std::string question = {};            ///< parameters, scenario and goal; not empty
  std::string device = {};              ///< its name then
  std::string result = "{}";            ///< JSON
  bool failed = false;                  ///< nothing could be priced; the result says why
  double elapsed_s = 0;                 ///< that finding it took
  std::string study = {};               ///< for which it was found
  Time found = {};

  bool operator==(const InferenceRecord&) const = default;
};
core::Fields fields_of(const InferenceRecord*);

}  // namespace fleetfit::store
