#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tune/scheduler.h"

namespace fleetfit::tune {
namespace {

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

std::unique_ptr<Scheduler> make_median(const SchedulerOptions& options) {
  return std::make_unique<MedianStop>(options);
}

}  // namespace fleetfit::tune
