#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <variant>

#include "fleetfit/core/result.h"
#include "fleetfit/tune/history.h"
#include "fleetfit/tune/study.h"

/// What a study does next. Decides, and knows neither stores nor processes.
namespace fleetfit::tune {

/// A new trial, queued for its first level.
struct StartTrial {
  std::size_t number = 0;
  Point point = {};
  std::size_t bracket = 0;
  std::size_t level = 0;  ///< brackets of HyperBand begin at different ones
};
/// A paused trial goes on to a higher level.
struct Promote {
  std::size_t number = 0;
  std::size_t level = 0;
};
/// A trial ends: `finished` at the highest level of its bracket, `stopped` below.
struct End {
  std::size_t number = 0;
  TrialState state = TrialState::stopped;
  std::string reason = {};  ///< why it was stopped
};
/// Nothing can be decided until something is told.
struct Wait {};
/// All trials have ended and no more are to come.
struct Done {};

using Decision = std::variant<StartTrial, Promote, End, Wait, Done>;

/// Sampler, scheduler and budgets of a study. Everything that was decided has to be told back as
/// part of the history: `told` takes the present state of a trial, of new ones in the order of
/// their numbers, as often as anything in it changed. Two tuners that were told the same changes in
/// the same order decide the same; one that was told the present states only (after a crash, by
/// number) too, but for the sampler's order of observations, which is that of the trials' ends: see
/// `Trial::results`. Cost of a decision: does not grow with the number of trials.
class Tuner {
 public:
  /// The study is borrowed.
  explicit Tuner(const Study& study);
  Tuner(Tuner&&) noexcept;
  ~Tuner();

  void told(const Trial& trial);

  /// One step. Ask again after telling what it decided, until it says Wait or Done.
  Decision next();

  /// How many trials of a rung have ended it, and how many went on: for people.
  struct Rung {
    std::size_t bracket = 0;
    std::size_t level = 0;
    std::size_t ended = 0;
    std::size_t promoted = 0;
    std::optional<double> best = std::nullopt;  ///< of the first objective, as the user counts it
  };
  std::vector<Rung> rungs() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleetfit::tune
