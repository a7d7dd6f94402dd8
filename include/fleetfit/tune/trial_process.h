#pragma once

#include <chrono>
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
  double accuracy = 0;      ///< of finished: a finite number
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
};

/// Runs it to its end. When `stop` asks for it: SIGTERM, ten seconds later SIGKILL. Fails only if
/// the checkpoint folder or the log cannot be written.
Result<TrialOutcome> run_trial(const TrialJob& job, const TrialListener& listener,
                               const std::stop_token& stop);

}  // namespace fleetfit::tune
