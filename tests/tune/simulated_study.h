#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/tune/budget.h"
#include "fleetfit/tune/tuner.h"

namespace fleetfit::tune {

/// A store and its workers as a tuner sees them, without processes: workers take queued trials,
/// report epochs, end levels in random order and fail now and then; inference becomes known some
/// time after a trial was taken.
class SimulatedStudy {
 public:
  struct Options {
    std::size_t workers = 4;
    double failures = 0.05;  ///< of levels
    std::uint64_t seed = 1;
  };

  SimulatedStudy(const Study& study, const Options& options)
      : study_(study), options_(options), levels_(levels(study.budget)), random_(options.seed) {}

  const std::vector<Trial>& trials() const { return trials_; }

  Room room() const {
    const auto queued = std::ranges::count(trials_, TrialState::queued, &Trial::state);
    return static_cast<std::size_t>(queued) < options_.workers ? Room::some : Room::none;
  }

  /// What a conductor does with a decision. Gives the trial that it changed.
  const Trial& apply(const Decision& decision) {
    if (const auto* start = std::get_if<StartTrial>(&decision)) {
      trials_.push_back({.number = start->number,
                         .point = start->point,
                         .bracket = start->bracket,
                         .level = start->level});
      return touch(trials_.back());
    }
    if (const auto* promote = std::get_if<Promote>(&decision)) {
      Trial& trial = trials_.at(promote->number);
      trial.level = promote->level;
      trial.state = TrialState::queued;
      return touch(trial);
    }
    const auto& end = std::get<End>(decision);
    Trial& trial = trials_.at(end.number);
    if (trial.state == TrialState::running) {
      trial.stop_requested = true;
    } else {
      trial.state = end.state;
    }
    return touch(trial);
  }

  /// Something happens to a trial, which is given; nothing if nothing can.
  const Trial* step() {
    std::vector<std::size_t> candidates;
    const auto busy = std::ranges::count(trials_, TrialState::running, &Trial::state);
    bool claimed = static_cast<std::size_t>(busy) >= options_.workers;
    for (const Trial& trial : trials_) {
      const bool claimable = trial.state == TrialState::queued && !claimed;
      claimed = claimed || claimable;
      const bool unpriced = trial.state == TrialState::paused && lacks_inference(trial);
      if (claimable || unpriced || trial.state == TrialState::running) {
        candidates.push_back(trial.number);
      }
    }
    if (candidates.empty()) return nullptr;
    Trial& trial = trials_[candidates[random_.below(candidates.size())]];
    happen_to(trial);
    return &touch(trial);
  }

  double accuracy(const Trial& trial, double share) const {
    return (0.5 + 0.4 * trial.point[0]) * (1 - std::exp(-3 * share)) + 0.01 * trial.point[0];
  }

 private:
  Trial& touch(Trial& trial) {
    trial.order = ++order_;
    return trial;
  }

  bool lacks_inference(const Trial& trial) const {
    return study_.inference.has_value() && !trial.inference;
  }

  void happen_to(Trial& trial) {
    if (trial.state == TrialState::queued) {
      trial.state = TrialState::running;
      trial.epochs.clear();
    } else if (lacks_inference(trial) && random_.chance(0.3)) {
      trial.inference = {
          {.device = "local", .latency_ms = 10 + 20 * trial.point[0], .throughput = 50}};
    } else if (trial.state == TrialState::running) {
      work_on(trial);
    }
  }

  void work_on(Trial& trial) {
    const Budget& budget = levels_[trial.level];
    if (trial.stop_requested) {
      trial.state = TrialState::stopped;
    } else if (static_cast<std::int64_t>(trial.epochs.size()) < budget.epochs) {
      const double epoch = static_cast<double>(trial.epochs.size() + 1);
      const double share = epoch / static_cast<double>(levels_.back().epochs);
      trial.epochs.push_back(accuracy(trial, share));
    } else if (random_.chance(options_.failures)) {
      trial.state = TrialState::failed;
    } else {
      trial.results.push_back({.level = trial.level,
                               .order = order_ + 1,
                               .budget = budget,
                               .accuracy = trial.epochs.back(),
                               .training_s = static_cast<double>(budget.epochs)});
      trial.state = TrialState::paused;
    }
  }

  const Study& study_;
  Options options_;
  std::vector<Budget> levels_;
  core::Random random_;
  std::vector<Trial> trials_;
  std::int64_t order_ = 0;
};

}  // namespace fleetfit::tune
