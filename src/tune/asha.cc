#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tune/async_rung.h"
#include "tune/scheduler.h"

namespace fleetfit::tune {
namespace {

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

std::unique_ptr<Scheduler> make_asha(const SchedulerOptions& options) {
  return std::make_unique<Asha>(options);
}

}  // namespace fleetfit::tune
