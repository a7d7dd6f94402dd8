#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "tune/scheduler.h"

namespace fleetfit::tune {
namespace {

/// How many trials a bracket has, and where they begin.
struct Shape {
  std::size_t trials = 1;
  std::size_t first_level = 0;
};

/// HyperBand as published: with s + 1 levels left to climb, as many trials as make every bracket
/// cost about the same.
Shape hyperband_shape(const SchedulerOptions& options, std::size_t bracket) {
  const std::size_t first_level = bracket % options.levels;
  const auto climbs = static_cast<double>(options.levels - 1 - first_level);
  const double wanted =
      static_cast<double>(options.levels) / (climbs + 1) * std::pow(options.eta, climbs);
  const double trials =
      std::clamp(std::ceil(wanted - 1e-9), 1.0, static_cast<double>(options.max_trials));
  return {.trials = static_cast<std::size_t>(trials), .first_level = first_level};
}

struct Rung {
  std::size_t entered = 0;
  std::size_t unresolved = 0;  ///< entered, and neither judged nor ended
  std::vector<Standing> standings = {};
};

struct Bracket {
  std::size_t first_trial = 0;
  Shape shape = {};
  std::vector<Rung> rungs = {};  ///< from the first level on
  std::size_t current = 0;       ///< the rung that is not settled yet

  // Of the current rung once it is complete: who is out, and who goes on. Best first.
  bool ranked = false;
  std::deque<std::size_t> losers = {};
  std::deque<std::size_t> winners = {};

  std::size_t current_level() const { return shape.first_level + current; }
  bool done() const { return current >= rungs.size(); }
};

/// Successive halving, in one bracket or in those of HyperBand. A rung is settled when all of its
/// trials have been judged or have ended. Brackets overlap: a worker that would wait for one begins
/// the next.
class Halving final : public Scheduler {
 public:
  explicit Halving(const SchedulerOptions& options) : options_(options) {}

  Place first_place(std::size_t number) override {
    const std::size_t index = bracket_of(number);
    return {.bracket = index, .level = brackets_[index].shape.first_level};
  }

  void judged(const Standing& standing, std::size_t bracket, std::size_t level) override {
    if (Rung* rung = find_rung(bracket, level)) rung->standings.push_back(standing);
  }

  void changed(const Trial& trial, const std::optional<TrialStatus>& before,
               const TrialStatus& now) override {
    bracket_of(trial.number);  // there are so many brackets at least
    if (before) {
      if (Rung* rung = unresolved_rung(*before)) --rung->unresolved;
    }
    enter(before, now);
    if (Rung* rung = unresolved_rung(now)) ++rung->unresolved;
    due_.insert(now.bracket);
  }

  std::optional<End> next_end(const Trials& all) override {
    for (auto index = due_.begin(); index != due_.end();) {
      Bracket& bracket = bracket_at(*index);
      settle(bracket, all);
      if (!bracket.losers.empty()) return end_of(bracket);
      index = bracket.winners.empty() ? due_.erase(index) : std::next(index);
    }
    return std::nullopt;
  }

  std::optional<Promote> next_promotion(const Trials& all) override {
    for (const std::size_t index : due_) {
      Bracket& bracket = bracket_at(index);
      settle(bracket, all);
      if (!bracket.winners.empty()) {
        return Promote{.number = bracket.winners.front(), .level = bracket.current_level() + 1};
      }
    }
    return std::nullopt;
  }

 private:
  Shape shape_of(std::size_t bracket) const {
    if (options_.kind == SchedulerKind::hyperband) return hyperband_shape(options_, bracket);
    return {.trials = options_.max_trials, .first_level = 0};
  }

  Bracket& bracket_at(std::size_t index) {
    while (brackets_.size() <= index) add_bracket();
    return brackets_[index];
  }

  void add_bracket() {
    const std::size_t first =
        brackets_.empty() ? 0 : brackets_.back().first_trial + brackets_.back().shape.trials;
    Shape shape = shape_of(brackets_.size());
    // The last one has what is left. Trials beyond, which others brought in, fill brackets of their
    // own.
    if (first < options_.max_trials) {
      shape.trials = std::min(shape.trials, options_.max_trials - first);
    }
    brackets_.push_back({.first_trial = first,
                         .shape = shape,
                         .rungs = std::vector<Rung>(options_.levels - shape.first_level)});
  }

  // Numbers are mostly of the newest bracket.
  std::size_t bracket_of(std::size_t number) {
    if (brackets_.empty()) add_bracket();
    while (number >= brackets_.back().first_trial + brackets_.back().shape.trials) add_bracket();
    const auto after = std::ranges::upper_bound(brackets_, number, {}, &Bracket::first_trial);
    return static_cast<std::size_t>(after - brackets_.begin()) - 1;
  }

  Rung* find_rung(std::size_t bracket, std::size_t level) {
    Bracket& found = bracket_at(bracket);
    if (level < found.shape.first_level) return nullptr;
    const std::size_t rung = level - found.shape.first_level;
    return rung < found.rungs.size() ? &found.rungs[rung] : nullptr;
  }

  Rung* unresolved_rung(const TrialStatus& status) {
    const bool resolved = status.ended() || status.judged_levels > status.level;
    return resolved ? nullptr : find_rung(status.bracket, status.level);
  }

  void enter(const std::optional<TrialStatus>& before, const TrialStatus& now) {
    const std::size_t from = before ? before->level + 1 : bracket_at(now.bracket).shape.first_level;
    for (std::size_t level = from; level <= now.level; ++level) {
      if (Rung* rung = find_rung(now.bracket, level)) ++rung->entered;
    }
  }

  std::size_t places_in(const Bracket& bracket, std::size_t rung) const {
    const double share = std::pow(options_.eta, -static_cast<double>(rung));
    const double places = std::floor(static_cast<double>(bracket.shape.trials) * share + 1e-9);
    return static_cast<std::size_t>(std::max(places, 1.0));
  }

  static bool is_complete(const Bracket& bracket) {
    const Rung& rung = bracket.rungs[bracket.current];
    const bool all_there = bracket.current > 0 || rung.entered >= bracket.shape.trials;
    return all_there && rung.unresolved == 0;
  }

  void rank(Bracket& bracket) const {
    const Rung& rung = bracket.rungs[bracket.current];
    const bool is_last = bracket.current + 1 == bracket.rungs.size();
    const std::size_t places = is_last ? 0 : places_in(bracket, bracket.current + 1);
    for (const std::size_t i : is_last ? std::vector<std::size_t>() : ranking(rung.standings)) {
      auto& list = bracket.winners.size() < places ? bracket.winners : bracket.losers;
      list.push_back(rung.standings[i].trial);
    }
    bracket.ranked = true;
  }

  // Drops those of whom nothing is left to decide, and goes to the next rung when none are left.
  void settle(Bracket& bracket, const Trials& all) const {
    while (!bracket.done()) {
      if (!bracket.ranked && !is_complete(bracket)) return;
      if (!bracket.ranked) rank(bracket);
      drop_decided(bracket.losers, bracket.current_level(), all);
      drop_decided(bracket.winners, bracket.current_level(), all);
      if (!bracket.losers.empty() || !bracket.winners.empty()) return;
      bracket.rungs[bracket.current].standings = {};
      bracket.ranked = false;
      ++bracket.current;
    }
  }

  static void drop_decided(std::deque<std::size_t>& list, std::size_t level, const Trials& all) {
    while (!list.empty() && !all[list.front()].waits_at(level)) list.pop_front();
  }

  End end_of(const Bracket& bracket) const {
    return {.number = bracket.losers.front(),
            .state = TrialState::stopped,
            .reason = fmt::format("not among the best {} of {} at level {}",
                                  places_in(bracket, bracket.current + 1),
                                  bracket.rungs[bracket.current].entered, bracket.current_level())};
  }

  SchedulerOptions options_;
  std::vector<Bracket> brackets_;
  std::set<std::size_t> due_;  ///< brackets in which something has changed
};

}  // namespace

std::unique_ptr<Scheduler> make_halving(const SchedulerOptions& options) {
  return std::make_unique<Halving>(options);
}

}  // namespace fleetfit::tune
