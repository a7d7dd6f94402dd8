// The real scheduler with simulated workers: how busy a cluster is kept, and how much of its time
// one tuner thinks. Time is simulated but for the tuner's own, which is measured while it decides;
// while it is busy, workers that have ended wait for it.
//   cluster_simulation [WORKERS] [MINUTES] [STORE_MS] [random|tpe|bohb]
// STORE_MS is what the tuner's writing costs for each decision (store_writers_bench measures it);
// the way from a queued trial to a worker that begins it takes as long again.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>
#include <queue>
#include <string_view>
#include <unordered_map>

#include "bench/asha_study.h"
#include "fleetfit/core/random.h"
#include "fleetfit/tune/tuner.h"

namespace {

using namespace fleetfit;
using namespace fleetfit::tune;
using Clock = std::chrono::steady_clock;

constexpr double kMeanTrainingS = 60;

struct Setting {
  std::size_t workers = 10'000;
  double minutes = 30;
  double store_s = 0;
  SamplerKind sampler = SamplerKind::random;
};

class Simulation {
 public:
  explicit Simulation(const Setting& setting)
      : setting_(setting),
        study_(asha_study(1'000'000'000, setting.sampler)),
        tuner_(study_),
        idle_(setting.workers) {}

  void run() {
    const double end = 60 * setting_.minutes;
    decide(0);
    while (!running_.empty() && running_.top().ends < end) {
      const auto ended = running_.top();
      running_.pop();
      // The tuner is one: who ends while it is busy waits.
      const double begin = std::max(ended.ends, tuner_free_);
      busy_s_ += ended.ends - ended.began;
      ++idle_;
      ++levels_;
      decide(begin, ended.trial);
    }
    for (; !running_.empty(); running_.pop()) busy_s_ += std::max(0.0, end - running_.top().began);
    print(end);
  }

 private:
  struct Running {
    double ends;
    double began;
    std::size_t trial;
    bool operator<(const Running& other) const { return ends > other.ends; }
  };

  // Tells the end of a level and carries out all that can be decided, from `now` on.
  void decide(double now, std::optional<std::size_t> ended = std::nullopt) {
    const auto begin = Clock::now();
    std::size_t decisions = 0;
    if (ended) tuner_.report(end_level(*ended));
    for (;; ++decisions) {
      const auto decision = tuner_.next(queue_.size() < idle_ + 1 ? Room::some : Room::none);
      if (std::holds_alternative<Wait>(decision) || std::holds_alternative<Done>(decision)) break;
      tuner_.report(apply(decision));
    }
    const double thought = std::chrono::duration<double>(Clock::now() - begin).count();
    const double wrote = setting_.store_s * static_cast<double>(decisions + (ended ? 1 : 0));
    thought_s_ += thought;
    wrote_s_ += wrote;
    decisions_ += decisions;
    tuner_free_ = now + thought + wrote;
    start_queued(tuner_free_ + setting_.store_s);
  }

  void start_queued(double now) {
    for (; idle_ > 0 && !queue_.empty(); --idle_) {
      running_.push({now + training_s(), now, queue_.front()});
      queue_.pop_front();
    }
  }

  // A minute on average; one in twenty takes four times as long.
  double training_s() {
    const double usual = random_.uniform(0.5, 1.5) * kMeanTrainingS / 1.15;
    return random_.chance(0.05) ? 4 * usual : usual;
  }

  const Trial& apply(const Decision& decision) {
    if (const auto* start = std::get_if<StartTrial>(&decision)) {
      queue_.push_back(start->number);
      return open_[start->number] = {
                 .number = start->number, .point = start->point, .level = start->level};
    }
    if (const auto* promote = std::get_if<Promote>(&decision)) {
      auto& trial = open_.at(promote->number);
      trial.level = promote->level;
      trial.state = TrialState::queued;
      queue_.push_back(trial.number);
      return trial;
    }
    const auto& end = std::get<End>(decision);
    gone_ = std::move(open_.extract(end.number).mapped());
    gone_.state = end.state;
    return gone_;
  }

  const Trial& end_level(std::size_t number) {
    auto& trial = open_.at(number);
    trial.state = TrialState::paused;
    const double x = trial.point[0] - 0.3;
    trial.results.push_back({.level = trial.level,
                             .order = ++order_,
                             .accuracy = 0.9 - x * x + 0.02 * static_cast<double>(trial.level)});
    return trial;
  }

  void print(double end) const {
    const double all_s = end * static_cast<double>(setting_.workers);
    fmt::print("{} workers, {:.0f} minutes, trainings of a minute: {} levels, {} decisions\n",
               setting_.workers, setting_.minutes, levels_, decisions_);
    fmt::print("  workers busy                {:>8.2f} %\n", 100 * busy_s_ / all_s);
    fmt::print("  the tuner decides           {:>8.2f} % of the time ({:.1f} us for each level)\n",
               100 * thought_s_ / end, 1e6 * thought_s_ / static_cast<double>(levels_));
    fmt::print("  the tuner waits for a store {:>8.2f} % of the time ({:.2f} ms for each write)\n",
               100 * wrote_s_ / end, 1000 * setting_.store_s);
  }

  Setting setting_;
  Study study_;
  Tuner tuner_;
  core::Random random_{1};
  std::unordered_map<std::size_t, Trial> open_;
  std::deque<std::size_t> queue_;
  std::priority_queue<Running> running_;
  Trial gone_;
  std::size_t idle_;
  std::int64_t order_ = 0;
  double tuner_free_ = 0;
  double busy_s_ = 0;
  double thought_s_ = 0;
  double wrote_s_ = 0;
  std::size_t levels_ = 0;
  std::size_t decisions_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string_view, SamplerKind> samplers = {
      {"random", SamplerKind::random}, {"tpe", SamplerKind::tpe}, {"bohb", SamplerKind::bohb}};
  Setting setting;
  if (argc > 1) setting.workers = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2) setting.minutes = std::atof(argv[2]);
  if (argc > 3) setting.store_s = std::atof(argv[3]) / 1000;
  const auto sampler = samplers.find(argc > 4 ? argv[4] : "random");
  if (setting.workers == 0 || setting.minutes <= 0 || sampler == samplers.end()) {
    fmt::print(stderr,
               "usage: cluster_simulation [WORKERS] [MINUTES] [STORE_MS] [random|tpe|bohb]\n");
    return 2;
  }
  setting.sampler = sampler->second;
  Simulation(setting).run();
}
