#include "tune/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "fleetfit/search/pareto.h"

namespace fleetfit::tune {
namespace {

/// `by_age`: indices, the oldest trial first.
std::vector<std::size_t> rank_by_sets(std::span<const Standing> standings,
                                      const std::vector<std::size_t>& by_age,
                                      std::size_t objectives) {
  std::vector<double> rows;
  std::vector<double> violations;
  for (const std::size_t i : by_age) {
    // A trial that broke a limit before its training has no values.
    auto values = standings[i].values;
    values.resize(objectives, std::numeric_limits<double>::infinity());
    rows.insert(rows.end(), values.begin(), values.end());
    violations.push_back(standings[i].violation);
  }
  auto ranked = search::best_first({rows, objectives}, violations);
  for (std::size_t& place : ranked) place = by_age[place];
  return ranked;
}

/// Every trial gets the largest budget at once.
class NoScheduler final : public Scheduler {
 public:
  explicit NoScheduler(std::size_t levels) : levels_(levels) {}

  Place first_place(std::size_t /*number*/) override { return {.level = levels_ - 1}; }
  void judged(const Standing& /*standing*/, std::size_t /*bracket*/,
              std::size_t /*level*/) override {}
  void changed(const Trial& /*trial*/, const std::optional<TrialStatus>& /*before*/,
               const TrialStatus& /*now*/) override {}
  std::optional<End> next_end(const Trials& /*all*/) override { return std::nullopt; }
  std::optional<Promote> next_promotion(const Trials& /*all*/) override { return std::nullopt; }

 private:
  std::size_t levels_;
};

constexpr std::size_t kLeastOthers = 5;

/// The median of numbers that come one by one, in logarithmic time.
class RunningMedian {
 public:
  void add(double number) {
    low_.insert(number);
    high_.insert(low_.extract(std::prev(low_.end())));
    if (high_.size() > low_.size()) low_.insert(high_.extract(high_.begin()));
  }

  std::size_t count() const { return low_.size() + high_.size(); }

  /// Of an even count, the mean of the two in the middle. There has to be a number.
  double median() const {
    if (low_.size() > high_.size()) return *low_.rbegin();
    return (*low_.rbegin() + *high_.begin()) / 2;
  }

 private:
  std::multiset<double> low_;  ///< as many as `high_`, or one more
  std::multiset<double> high_;
};

/// Stops a running trial whose best accuracy is below the median of the others' mean accuracies up
/// to the same epoch. The others are those that have trained to the end of the level: what they
/// reported changes no more, so that the rule depends on the present states alone.
class MedianStop final : public Scheduler {
 public:
  explicit MedianStop(const SchedulerOptions& options) : options_(options) {}

  Place first_place(std::size_t /*number*/) override { return {.level = options_.levels - 1}; }

  void judged(const Standing& standing, std::size_t /*bracket*/, std::size_t /*level*/) override {
    just_judged_ = standing.trial;
  }

  void changed(const Trial& trial, const std::optional<TrialStatus>& /*before*/,
               const TrialStatus& now) override {
    if (just_judged_ == trial.number) add_means(trial.epochs);
    just_judged_.reset();
    if (now.state == TrialState::running && !trial.stop_requested && !trial.epochs.empty()) {
      running_[trial.number] = {.epoch = trial.epochs.size(),
                                .best = *std::ranges::max_element(trial.epochs)};
    } else {
      running_.erase(trial.number);
    }
  }

  std::optional<End> next_end(const Trials& /*all*/) override {
    for (auto trial = running_.begin(); trial != running_.end(); ++trial) {
      auto reason = reason_to_stop(trial->second);
      if (!reason) continue;
      End end = {
          .number = trial->first, .state = TrialState::stopped, .reason = std::move(*reason)};
      running_.erase(trial);  // asked for once, until it is reported again
      return end;
    }
    return std::nullopt;
  }

  std::optional<Promote> next_promotion(const Trials& /*all*/) override { return std::nullopt; }

 private:
  struct Progress {
    std::size_t epoch = 0;
    double best = 0;
  };

  void add_means(const std::vector<double>& epochs) {
    double sum = 0;
    medians_.resize(std::max(medians_.size(), epochs.size()));
    for (std::size_t i = 0; i < epochs.size(); ++i) {
      sum += epochs[i];
      medians_[i].add(sum / static_cast<double>(i + 1));
    }
  }

  std::optional<std::string> reason_to_stop(const Progress& progress) const {
    if (progress.epoch < options_.grace_epochs || progress.epoch > medians_.size()) {
      return std::nullopt;
    }
    const RunningMedian& others = medians_[progress.epoch - 1];
    if (others.count() < kLeastOthers || !(progress.best < others.median())) return std::nullopt;
    return fmt::format("accuracy {:.4g} after {} epochs, below the median of {} others, {:.4g}",
                       progress.best, progress.epoch, others.count(), others.median());
  }

  SchedulerOptions options_;
  std::vector<RunningMedian> medians_;  ///< by epoch
  std::map<std::size_t, Progress> running_;
  std::optional<std::size_t> just_judged_;
};

}  // namespace

bool is_before(const Standing& a, const Standing& b) {
  if (a.violation != b.violation) return a.violation < b.violation;
  if (a.values != b.values) return a.values < b.values;
  return a.trial < b.trial;
}

std::vector<std::size_t> ranking(std::span<const Standing> standings) {
  std::vector<std::size_t> indices(standings.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::size_t objectives = 0;
  for (const auto& standing : standings) objectives = std::max(objectives, standing.values.size());
  if (objectives > 1) {
    std::ranges::sort(indices, {}, [&](std::size_t i) { return standings[i].trial; });
    return rank_by_sets(standings, indices, objectives);
  }
  std::ranges::sort(
      indices, [&](std::size_t a, std::size_t b) { return is_before(standings[a], standings[b]); });
  return indices;
}

std::unique_ptr<Scheduler> make_scheduler(const SchedulerOptions& options) {
  switch (options.kind) {
    case SchedulerKind::successive_halving:
    case SchedulerKind::hyperband:
      return make_halving(options);
    case SchedulerKind::asha:
      return make_asha(options);
    case SchedulerKind::median:
      return std::make_unique<MedianStop>(options);
    case SchedulerKind::none:
      break;
  }
  return std::make_unique<NoScheduler>(options.levels);
}

}  // namespace fleetfit::tune
