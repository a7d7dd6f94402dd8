#include "tune/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

namespace fleetfit::tune {
namespace {

std::size_t places(std::size_t judged, double eta) {
  return static_cast<std::size_t>(std::floor(static_cast<double>(judged) / eta + 1e-9));
}

class SortedRung final : public AsyncRung {
 public:
  explicit SortedRung(double eta) : eta_(eta) {}

  void add(const Standing& standing) override {
    const Key key = {standing.violation, standing.values.empty() ? 0 : standing.values[0],
                     standing.trial};
    keys_.emplace(standing.trial, key);
    // The worse of it and the worst of the best makes room.
    best_.insert(key);
    rest_.insert(best_.extract(std::prev(best_.end())));
    while (best_.size() < places(keys_.size(), eta_)) best_.insert(rest_.extract(rest_.begin()));
  }

  void wait(std::size_t trial) override {
    if (const auto key = keys_.find(trial); key != keys_.end()) waiting_.insert(key->second);
  }
  void leave(std::size_t trial) override {
    if (const auto key = keys_.find(trial); key != keys_.end()) waiting_.erase(key->second);
  }

  std::optional<std::size_t> promotable() const override {
    if (waiting_.empty() || best_.empty() || *best_.rbegin() < *waiting_.begin()) {
      return std::nullopt;
    }
    return waiting_.begin()->trial;
  }

  std::optional<std::size_t> best_waiting() const override {
    if (waiting_.empty()) return std::nullopt;
    return waiting_.begin()->trial;
  }

 private:
  struct Key {
    double violation = 0;
    double value = 0;
    std::size_t trial = 0;
    auto operator<=>(const Key&) const = default;
  };

  double eta_;
  std::unordered_map<std::size_t, Key> keys_;
  std::set<Key> best_;  ///< the best 1/eta
  std::set<Key> rest_;
  std::set<Key> waiting_;
};

struct Cohort {
  std::vector<Standing> standings = {};
  std::vector<std::size_t> ranks = {};  ///< indices of standings, best first
  std::set<std::size_t> waiting = {};

  /// The best of those that wait, if it is among the first `count`.
  std::optional<std::size_t> best_of_first(std::size_t count) const {
    for (std::size_t i = 0; i < std::min(count, ranks.size()); ++i) {
      const std::size_t trial = standings[ranks[i]].trial;
      if (waiting.contains(trial)) return trial;
    }
    return std::nullopt;
  }
};

class CohortRung final : public AsyncRung {
 public:
  CohortRung(double eta, std::size_t cohort) : eta_(eta), cohort_(cohort) {}

  void add(const Standing& standing) override {
    Cohort& cohort = cohorts_[standing.trial / cohort_];
    cohort.standings.push_back(standing);
    cohort.ranks = ranking(cohort.standings);
    look_at(standing.trial);
  }
  void wait(std::size_t trial) override {
    cohorts_[trial / cohort_].waiting.insert(trial);
    look_at(trial);
  }
  void leave(std::size_t trial) override {
    cohorts_[trial / cohort_].waiting.erase(trial);
    look_at(trial);
  }

  std::optional<std::size_t> promotable() const override {
    if (promotable_.empty()) return std::nullopt;
    return promotable_.begin()->second;
  }

  std::optional<std::size_t> best_waiting() const override {
    if (waiting_.empty()) return std::nullopt;
    const Cohort& cohort = cohorts_.at(*waiting_.begin());
    return cohort.best_of_first(cohort.ranks.size());
  }

 private:
  void look_at(std::size_t trial) {
    const std::size_t number = trial / cohort_;
    const Cohort& cohort = cohorts_[number];
    if (cohort.waiting.empty()) {
      waiting_.erase(number);
    } else {
      waiting_.insert(number);
    }
    const auto best = cohort.best_of_first(places(cohort.ranks.size(), eta_));
    if (best) {
      promotable_[number] = *best;
    } else {
      promotable_.erase(number);
    }
  }

  double eta_;
  std::size_t cohort_;
  std::map<std::size_t, Cohort> cohorts_;
  std::set<std::size_t> waiting_;                  ///< cohorts in which somebody waits
  std::map<std::size_t, std::size_t> promotable_;  ///< cohort to its best trial
};

constexpr double kCohort = 256;  // judged in each rung of it, or so

std::unique_ptr<AsyncRung> make_rung(const SchedulerOptions& options, std::size_t level) {
  if (options.objectives == 1) return make_sorted_rung(options.eta);
  const double cohort = kCohort * std::pow(options.eta, static_cast<double>(level));
  return make_cohort_rung(options.eta, static_cast<std::size_t>(std::min(cohort, 1e15)));
}

/// Asynchronous successive halving: a trial among the best 1/eta of a rung goes on, highest
/// rungs first; if none is, a new trial begins. When no trial is left to begin and none at work,
/// those that still wait are stopped; if none has come to the highest level by then, the best that
/// waits in the highest rung goes on.
class Asha final : public Scheduler {
 public:
  explicit Asha(const SchedulerOptions& options) : options_(options) {
    for (std::size_t level = 0; level + 1 < options.levels; ++level) {
      rungs_.push_back(make_rung(options, level));
    }
  }

  Place first_place(std::size_t /*number*/) override { return {}; }

  void judged(const Standing& standing, std::size_t /*bracket*/, std::size_t level) override {
    if (level < rungs_.size()) rungs_[level]->add(standing);
  }

  void changed(const Trial& trial, const std::optional<TrialStatus>& before,
               const TrialStatus& now) override {
    if (!before) ++started_;
    reached_top_ = reached_top_ || now.level + 1 >= options_.levels;
    if (before && before->waits()) {
      waiting_.erase(trial.number);
      if (before->level < rungs_.size()) rungs_[before->level]->leave(trial.number);
    }
    if (now.waits()) {
      waiting_.insert(trial.number);
      if (now.level < rungs_.size()) rungs_[now.level]->wait(trial.number);
    }
    at_work_ -= before && is_at_work(*before) ? 1 : 0;
    at_work_ += is_at_work(now) ? 1 : 0;
  }

  std::optional<End> next_end(const Trials& all) override {
    if (!is_over() || waiting_.empty() || next_promotion(all)) return std::nullopt;
    const std::size_t number = *waiting_.begin();
    return End{.number = number,
               .state = TrialState::stopped,
               .reason = fmt::format("not among the best of every {:g} at level {}", options_.eta,
                                     all[number].level)};
  }

  std::optional<Promote> next_promotion(const Trials& /*all*/) override {
    for (std::size_t level = rungs_.size(); level-- > 0;) {
      if (const auto best = rungs_[level]->promotable()) {
        return Promote{.number = *best, .level = level + 1};
      }
    }
    if (!is_over() || reached_top_) return std::nullopt;
    for (std::size_t level = rungs_.size(); level-- > 0;) {
      if (const auto best = rungs_[level]->best_waiting()) {
        return Promote{.number = *best, .level = level + 1};
      }
    }
    return std::nullopt;
  }

 private:
  static bool is_at_work(const TrialStatus& status) { return !status.ended() && !status.waits(); }

  bool is_over() const { return started_ >= options_.max_trials && at_work_ == 0; }

  SchedulerOptions options_;
  std::vector<std::unique_ptr<AsyncRung>> rungs_;  ///< of all levels but the highest
  std::set<std::size_t> waiting_;
  std::size_t started_ = 0;
  std::int64_t at_work_ = 0;
  bool reached_top_ = false;
};

}  // namespace

std::unique_ptr<AsyncRung> make_sorted_rung(double eta) {
  return std::make_unique<SortedRung>(eta);
}

std::unique_ptr<AsyncRung> make_cohort_rung(double eta, std::size_t cohort) {
  return std::make_unique<CohortRung>(eta, cohort);
}

std::unique_ptr<Scheduler> make_asha(const SchedulerOptions& options) {
  return std::make_unique<Asha>(options);
}

}  // namespace fleetfit::tune
