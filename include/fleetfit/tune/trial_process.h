#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/tune/budget.h"

/// One level of a trial as a process that speaks the trial protocol (docs/formats/trial.md).
namespace fleetfit::tune {

struct TrialJob {
  std::vector<std::string> command = {};
  std::string study = {};
  std::size_t trial = 0;
  std::string params = "{}";  ///< JSON, all groups flat
  Budget budget = {};
  std::filesystem::path checkpoint_folder = {};
  bool resume = false;
  double timeout_s = 0;  ///< 0: none
  std::optional<std::int64_t> memory_bytes = std::nullopt;
  std::vector<int> cores = {};     ///< pinned to these; empty: any
  std::filesystem::path log = {};  ///< its other lines and stderr are appended here
  std::uint64_t seed = 1;          ///< below 2^31; for its own random numbers
  /// How often the trial was taken, and by whom: of two that want its checkpoint folder the later
  /// one gets it.
  std::int64_t attempt = 1;
  std::string worker = {};
};

struct TrialProcessOptions {
  std::chrono::milliseconds grace{10'000};   ///< from SIGTERM to SIGKILL
  std::chrono::milliseconds linger{30'000};  ///< for its end after it gave its result
  std::size_t max_line_bytes = std::size_t{1} << 20;
  std::size_t max_log_bytes = std::size_t{64} << 20;  ///< of one run; the rest is dropped
};

struct EpochReport {
  std::int64_t epoch = 0;
  std::optional<double> accuracy = std::nullopt;
  std::optional<double> loss = std::nullopt;
};

/// What it said and how it ended. A trial that fails is a value with a reason, not an error.
struct TrialOutcome {
  enum class End : std::uint8_t { finished, stopped, failed };
  End end = End::failed;
  std::string reason = {};  ///< of stopped and failed: one line; of failed with the log's end
  /// It ended by SIGTERM, as all processes of a job do that a cluster ends.
  bool was_told_to_end = false;
  double accuracy = 0;  ///< of finished: a finite number
  std::optional<double> loss = std::nullopt;
  std::map<std::string, double> other = {};  ///< further finite numbers of its result
  std::string model_file = {};               ///< may be empty
  double elapsed_s = 0;
  double cpu_s = 0;  ///< of it and what it started
  std::vector<EpochReport> epochs = {};
};

struct TrialListener {
  std::function<void(const EpochReport&)> on_epoch = {};
  /// An untrained network of the trial's structure is there: {"model": "file.onnx"} before the end.
  std::function<void(const std::string&)> on_model = {};
  /// How far it is, in its own words: one line of at most `kLongestProgress` bytes.
  std::function<void(const std::string&)> on_progress = {};
};
inline constexpr std::size_t kLongestProgress = 500;

/// Runs it to its end. When `stop` asks for it: SIGTERM to it and all that it started, and SIGKILL
/// after the grace time. Whatever ends this process, even SIGKILL, ends the trial; should a trial
/// of an earlier attempt still run in the checkpoint folder, it is killed first.
///
/// Fails if the checkpoint folder or the log cannot be written (`io`), or if a later attempt has
/// had the folder (`cancelled`).
Result<TrialOutcome> run_trial(const TrialJob& job, const TrialListener& listener,
                               const std::stop_token& stop,
                               const TrialProcessOptions& options = {});

}  // namespace fleetfit::tune
