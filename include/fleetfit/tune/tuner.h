#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

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
/// A trial ends: `finished` at the highest level of its bracket, `stopped` below, `failed` if its
/// result lacks what the objective needs.
struct End {
  std::size_t number = 0;
  TrialState state = TrialState::stopped;
  std::string reason = {};  ///< why it was stopped or has failed
};
/// Nothing can be decided until something is reported.
struct Wait {};
/// All trials have ended and no more are to come.
struct Done {};

using Decision = std::variant<StartTrial, Promote, End, Wait, Done>;

/// What `Tuner::next` may decide.
enum class Room : std::uint8_t {
  none,  ///< the queue is full: only ends
  some,  ///< there is room for one more trial in the queue
};

/// Sampler, scheduler and budgets of a study. Everything that was decided has to come back as
/// part of the history: `report` takes the present state of a trial, of new ones in the order of
/// their numbers, as often as anything in it changed.
///
/// Decisions are a function of the present states, however they came about: a tuner that hears
/// the present states only, after a crash, by number, goes on as the one that lived would have. The
/// sampler learns of the ends of levels in the order of `LevelResult::order`, where one that waits
/// for inference holds up those after it; if nobody counts, as soon as they are known, which is as
/// exact with one objective. Asking changes nothing: asked again
/// without a report in between, it decides the same; only the end of a running trial is decided
/// once, until that trial is reported again. Cost of a decision: does not grow with the number of
/// trials.
///
/// A trial that breaks a limit on a device is ended as soon as its inference is known, and one
/// whose result lacks a number that the objective needs has failed.
class Tuner {
 public:
  /// The study is borrowed.
  explicit Tuner(const Study& study);
  Tuner(Tuner&&) noexcept;
  ~Tuner();

  void report(const Trial& trial);

  /// One step: ends come first, then promotions, then new trials. Ask again after telling what it
  /// decided, until it says Wait or Done. The end of a running trial is to be passed on to its
  /// worker; it is reported back as `Trial::stop_requested`.
  Decision next(Room room = Room::some);

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
