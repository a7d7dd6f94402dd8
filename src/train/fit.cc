#include "train/fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fleetfit/core/counting.h"
#include "train/tiny_is_zero.h"

namespace fleetfit::train {
namespace {

constexpr int kScoutEpochs = 20;
constexpr double kRateFall = 0.4;
constexpr double kAboutAsGood = 1.02;
constexpr std::size_t kShareOfFinalists = 4;
constexpr std::size_t kShareOfValidation = 5;

std::size_t finalists(std::size_t candidates) {
  return (candidates + kShareOfFinalists - 1) / kShareOfFinalists;
}

void sort_by_error(std::vector<std::size_t>& order,
                   const std::vector<std::unique_ptr<Training>>& trainings) {
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return trainings[i]->best_percent(); });
}

std::size_t smallest_of_the_best(const std::vector<std::size_t>& order,
                                 const std::vector<std::unique_ptr<Training>>& trainings,
                                 const std::vector<Candidate>& candidates) {
  std::size_t best = order.front();
  const double limit = trainings[best]->best_percent() * kAboutAsGood;
  for (const std::size_t i : order) {
    if (trainings[i]->best_percent() <= limit && candidates[i].weights < candidates[best].weights)
      best = i;
  }
  return best;
}

}  // namespace

core::Names names_of(Ended) {
  static constexpr core::Name kAll[] = {
      {Ended::patience, "patience"}, {Ended::epochs, "epochs"}, {Ended::early, "early"}};
  return {.what = "end", .all = kAll};
}

void Training::run_epoch(int patience) {
  fit_->run_epoch(rate_);
  ++epoch_;
  const double percent = fit_->validation_percent();
  if (epoch_ == 1 || percent < best_percent_) {
    best_percent_ = std::isfinite(percent) ? percent : HUGE_VAL;
    best_epoch_ = epoch_;
    fit_->keep();
  }
  if (epoch_ - std::max(best_epoch_, rate_epoch_) >= std::max(patience / 4, 1)) {
    rate_ *= kRateFall;
    rate_epoch_ = epoch_;
  }
}

void Training::run(int epochs, int patience, const Deadline& deadline) {
  const TinyIsZero while_training;
  ended_ = Ended::epochs;
  while (epoch_ < epochs || epoch_ == 0) {
    if (epoch_ > 0 && deadline.is_over()) {
      ended_ = Ended::early;
      return;
    }
    run_epoch(patience);
    if (epoch_ - best_epoch_ >= patience) {
      ended_ = Ended::patience;
      return;
    }
  }
}

std::size_t search_steps(std::size_t candidates) { return candidates + finalists(candidates); }

Found search(const std::vector<Candidate>& candidates, const TrainingOptions& options,
             const Deadline& deadline, core::ThreadPool& pool, core::ProgressTask& progress) {
  std::vector<std::unique_ptr<Training>> trainings(candidates.size());
  const int scout_epochs = std::min(kScoutEpochs, options.max_epochs);
  pool.parallel_chunks(candidates.size(), 1, [&](std::size_t i, std::size_t) {
    // The first is tried in any case: something has to come out.
    if (i == 0 || !deadline.is_over()) {
      trainings[i] = std::make_unique<Training>(candidates[i].make(), candidates[i].rate);
      trainings[i]->run(scout_epochs, options.patience, deadline);
    }
    progress.advance();
  });

  auto order = core::counting(trainings.size());
  std::erase_if(order, [&](std::size_t i) { return !trainings[i]; });
  sort_by_error(order, trainings);
  order.resize(std::min(order.size(), finalists(candidates.size())));
  pool.parallel_chunks(order.size(), 1, [&](std::size_t i, std::size_t) {
    trainings[order[i]]->run(options.max_epochs, options.patience, deadline);
    progress.advance();
  });
  sort_by_error(order, trainings);
  const std::size_t best = smallest_of_the_best(order, trainings, candidates);
  return {.candidate = best, .training = std::move(trainings[best])};
}

Split split_samples(std::vector<std::size_t> samples, core::Random random) {
  random.shuffle(samples);
  const std::size_t count = samples.size() / kShareOfValidation;
  if (count == 0) return {.training = samples, .validation = samples};
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(count);
  return {.training = {middle, samples.end()}, .validation = {samples.begin(), middle}};
}

}  // namespace fleetfit::train
