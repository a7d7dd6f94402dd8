#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/store/study_records.h"
#include "fleetfit/tune/budget.h"
#include "fleetfit/tune/parameters.h"
#include "fleetfit/tune/study.h"

/// What a study knows: its trials, as they stand in the store. Samplers, schedulers and objectives
/// are functions of it alone, so that a study that was killed goes on as if nothing had happened.
namespace fleetfit::tune {

/// `queued` for a worker to take, or `paused` between two levels, both of which people see as
/// "waiting"; `finished`: trained with the largest budget of its bracket; `stopped`: cut, as others
/// were better or a limit was broken.
using store::has_ended;
using store::TrialState;

/// How a network runs where it is deployed: the answer of inference tuning on one device.
struct Inference {
  std::string device = {};
  double latency_ms = 0;   ///< of one batch, as chosen
  double response_ms = 0;  ///< mean in the scenario
  double throughput = 0;
  std::optional<double> energy_mj = std::nullopt;  ///< per sample
};

/// What a trial had reached at the end of a level.
struct LevelResult {
  std::size_t level = 0;
  /// Increases with the ends of levels of the study, as the store counts them, so that they can be
  /// replayed in that order; 0 if nobody counted.
  std::int64_t order = 0;
  Budget budget = {};
  double accuracy = 0;
  std::optional<double> loss = std::nullopt;
  double training_s = 0;  ///< of all its levels so far
  std::optional<double> training_j = std::nullopt;
  std::map<std::string, double> other = {};  ///< further numbers of its result
};

struct Trial {
  std::size_t number = 0;  ///< from 0, without gaps
  Point point = {};
  std::size_t bracket = 0;
  std::size_t level = 0;  ///< that it is in, or has ended last
  TrialState state = TrialState::queued;
  bool stop_requested = false;  ///< while it is running: its worker was asked to end it
  std::int64_t order = 0;       ///< of its last change, in the count of `LevelResult::order`
  std::vector<LevelResult> results = {};  ///< of the levels it has ended, lowest first
  /// Accuracy after each epoch of the level it is in, or has ended last.
  std::vector<double> epochs = {};
  /// On each device of the study, in its order; nothing until it is known of all of them. What
  /// becomes known after the trial has ended is not filled in.
  std::optional<std::vector<Inference>> inference = std::nullopt;
};

/// The objective's values of a trial at the end of a level, all to be minimized; nothing while a
/// number they need is not known. A trial with an accuracy of 0 has an infinite ratio. In
/// hierarchical studies ratios count training alone.
std::optional<std::vector<double>> objective_values(const Study& study, const Trial& trial,
                                                    const LevelResult& result);

/// A number that the objective needs and that will never be known, for people: "the result has no
/// loss, which the objective needs". Nothing if all are there, or inference is to come.
std::optional<std::string> lacking_number(const Study& study, const Trial& trial,
                                          const LevelResult& result);

/// Whether the objective or a limit of the study goes by inference, so that trials are judged only
/// once it is known.
bool needs_inference(const Study& study);

/// By how much the limits of the study are broken, relative to them, summed up; 0 if none is.
double violation(const Study& study, const Trial& trial, const LevelResult& result);

/// The same of the limits on devices alone.
double device_violation(const Study& study, const std::vector<Inference>& known);

/// The first limit on a device that a network breaks, for people: "latency on local: 34.1 ms, at
/// most 20 ms"; nothing if all hold. Known before anything is trained.
std::optional<std::string> broken_limit(const Study& study, const std::vector<Inference>& known);

}  // namespace fleetfit::tune
