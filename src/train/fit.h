#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/train/training.h"

namespace fleetfit::train {

/// A network in training. Belongs to one thread at a time; uses one.
class Fit {
 public:
  virtual ~Fit() = default;

  /// One pass over the training samples.
  virtual void run_epoch(double rate) = 0;

  /// Mean error over the validation samples, in percent.
  virtual double validation_percent() = 0;

  /// What the network is now is the best so far, to be kept.
  virtual void keep() = 0;
};

/// When training has to end, however good or bad it is by then.
struct Deadline {
  const core::Clock& clock;
  std::optional<std::chrono::nanoseconds> end;
  std::stop_token stop;

  bool is_over() const { return stop.stop_requested() || (end && clock.now() >= *end); }
};

/// Trains a fit epoch by epoch with a rate that falls when there is no progress; can be continued.
class Training {
 public:
  Training(std::unique_ptr<Fit> fit, double rate) : fit_(std::move(fit)), rate_(rate) {}

  /// Until `epochs` have been run in all, or `patience` of them brought nothing, or the deadline is
  /// over; the first epoch is always run.
  void run(int epochs, int patience, const Deadline& deadline);

  Fit& fit() { return *fit_; }
  int best_epoch() const { return best_epoch_; }
  double best_percent() const { return best_percent_; }
  Ended ended() const { return ended_; }

 private:
  void run_epoch(int patience);

  std::unique_ptr<Fit> fit_;
  double rate_;
  int epoch_ = 0;
  int best_epoch_ = 0;
  int rate_epoch_ = 0;  // when the rate was set
  double best_percent_ = 0;
  Ended ended_ = Ended::epochs;
};

template <class T, std::size_t n>
T one_of(const std::array<T, n>& choices, core::Random& random) {
  return choices[static_cast<std::size_t>(random.below(n))];
}

/// Settings that may be tried.
struct Candidate {
  std::function<std::unique_ptr<Fit>()> make;
  double rate = 0;
  std::size_t weights = 0;  ///< in the network; of two that are about as good, the smaller is taken
};

struct Found {
  std::size_t candidate = 0;
  std::unique_ptr<Training> training;
};

/// Trains all candidates for a few epochs, and the best quarter of them to the end. Gives the same
/// whatever the number of threads, unless the deadline cuts it short.
Found search(const std::vector<Candidate>& candidates, const TrainingOptions& options,
             const Deadline& deadline, core::ThreadPool& pool, core::ProgressTask& progress);

/// How many units of progress a search reports.
std::size_t search_steps(std::size_t candidates);

/// Which samples are for validation: a fifth of them, at random; of fewer than five, those that are
/// trained on.
struct Split {
  std::vector<std::size_t> training;
  std::vector<std::size_t> validation;
};
Split split_samples(std::vector<std::size_t> samples, core::Random random);

}  // namespace fleetfit::train
