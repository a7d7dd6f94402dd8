#include "tune/async_rung.h"

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

}  // namespace

std::unique_ptr<AsyncRung> make_sorted_rung(double eta) {
  return std::make_unique<SortedRung>(eta);
}

std::unique_ptr<AsyncRung> make_cohort_rung(double eta, std::size_t cohort) {
  return std::make_unique<CohortRung>(eta, cohort);
}

}  // namespace fleetfit::tune
