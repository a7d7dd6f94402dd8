// How long a tuner thinks for each trial, from the first to the millionth: trials that end at once
// go through a Tuner with ASHA. Prints the time of each trial's decisions and news, by stretches.
//   tuner_scale_bench [TRIALS] [random|tpe|bohb|nsga2]
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>
#include <string_view>
#include <unordered_map>

#include "bench/asha_study.h"
#include "fleetfit/tune/budget.h"
#include "fleetfit/tune/tuner.h"

namespace {

using namespace fleetfit::tune;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kWorkers = 8;

/// Trials that are queued, and those that wait for a decision.
class Workers {
 public:
  Room room() const { return queue_.size() < kWorkers ? Room::some : Room::none; }
  bool idle() const { return queue_.empty(); }

  const Trial& apply(const Decision& decision) {
    if (const auto* start = std::get_if<StartTrial>(&decision)) {
      queue_.push_back(start->number);
      Trial trial = {.number = start->number, .point = start->point, .level = start->level};
      return open_[start->number] = std::move(trial);
    }
    if (const auto* promote = std::get_if<Promote>(&decision)) {
      Trial& trial = open_.at(promote->number);
      trial.level = promote->level;
      trial.state = TrialState::queued;
      queue_.push_back(trial.number);
      return trial;
    }
    const auto& end = std::get<End>(decision);
    auto node = open_.extract(end.number);
    ended_ = std::move(node.mapped());
    ended_.state = end.state;
    return ended_;
  }

  const Trial& end_level() {
    Trial& trial = open_.at(queue_.front());
    queue_.pop_front();
    trial.state = TrialState::paused;
    const double x = trial.point[0] - 0.3;
    trial.results.push_back({.level = trial.level,
                             .order = ++order_,
                             .accuracy = 0.9 - x * x + 0.02 * static_cast<double>(trial.level)});
    return trial;
  }

 private:
  std::unordered_map<std::size_t, Trial> open_;
  Trial ended_;
  std::deque<std::size_t> queue_;
  std::int64_t order_ = 0;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void run(const Study& study) {
  const std::size_t stretch = std::max<std::size_t>(study.budget.max_trials / 10, 1);
  Tuner tuner(study);
  Workers workers;
  std::size_t started = 0;
  const auto whole = Clock::now();
  auto begin = whole;
  while (true) {
    const Decision decision = tuner.next(workers.room());
    if (std::holds_alternative<Done>(decision)) break;
    if (std::holds_alternative<Wait>(decision)) {
      if (workers.idle()) break;
      tuner.report(workers.end_level());
      continue;
    }
    tuner.report(workers.apply(decision));
    if (!std::holds_alternative<StartTrial>(decision) || ++started % stretch != 0) continue;
    fmt::print("{:>9} to {:>9}: {:7.2f} us per trial\n", started - stretch, started,
               1e6 * seconds_since(begin) / static_cast<double>(stretch));
    begin = Clock::now();
  }
  fmt::print("all {} trials, with the ends of those that waited: {:.2f} us per trial\n", started,
             1e6 * seconds_since(whole) / static_cast<double>(started));
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string_view, SamplerKind> samplers = {{"random", SamplerKind::random},
                                                            {"tpe", SamplerKind::tpe},
                                                            {"bohb", SamplerKind::bohb},
                                                            {"nsga2", SamplerKind::nsga2}};
  const std::size_t trials = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const auto sampler = samplers.find(argc > 2 ? argv[2] : "random");
  if (trials == 0 || sampler == samplers.end()) {
    fmt::print(stderr, "usage: tuner_scale_bench [TRIALS] [random|tpe|bohb|nsga2]\n");
    return 2;
  }
  fmt::print("ASHA over {} levels, sampler {}\n",
             levels(asha_study(trials, sampler->second).budget).size(), sampler->first);
  const Study study = asha_study(trials, sampler->second);
  run(study);
}
