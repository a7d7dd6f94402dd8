#include <cstdio>
#include <span>
#include <string>
#include <thread>

#include "fleetfit/store/store.h"

/// Works on the trials of a study until all have ended, for tests with several processes:
///   study_worker URL STUDY NAME
/// Each trial has two levels. Prints "TRIAL LEVEL" for each level's end that the store has
/// confirmed. May be killed at any moment.
namespace fleetfit::store {
namespace {

using namespace std::chrono_literals;

constexpr auto kLease = 100ms;
constexpr std::int64_t kLastLevel = 1;

class Worker {
 public:
  Worker(StudyStore& studies, std::string study, std::string name)
      : studies_(studies), study_(std::move(study)), name_(std::move(name)) {}

  // True once all trials have ended.
  Result<bool> step() {
    const auto claimed = studies_.claim_trial(study_, name_, now(), now() + kLease);
    if (!claimed) return tl::unexpected(claimed.error());
    if (*claimed) return work(**claimed).map([] { return false; });
    return decide_all();
  }

 private:
  static Time now() {
    return std::chrono::time_point_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now());
  }

  Status work(const TrialRecord& trial) {
    const Claim claim{
        .study = study_, .trial = trial.number, .worker = name_, .attempt = trial.attempts};
    const LevelRecord level{.level = trial.level,
                            .accuracy = static_cast<double>(trial.number),
                            .worker = name_,
                            .started = now(),
                            .ended = now()};
    const auto hold = studies_.end_level(claim, level, "");
    if (!hold) return tl::unexpected(hold.error());
    if (*hold == Hold::lost) return {};
    std::printf("%lld %lld\n", static_cast<long long>(trial.number),
                static_cast<long long>(trial.level));
    std::fflush(stdout);
    return decide(trial.number, trial.level);
  }

  Status decide(std::int64_t trial, std::int64_t level) {
    const auto decided = level < kLastLevel
                             ? studies_.queue_level(study_, trial, level + 1)
                             : studies_.end_trial(study_, trial, TrialState::finished, "");
    // Somebody else may have decided it, and another one ended the next level meanwhile.
    if (!decided && decided.error().code != ErrorCode::invalid_input)
      return tl::unexpected(decided.error());
    return {};
  }

  // What others left undecided when they were killed.
  Result<bool> decide_all() {
    const auto trials = studies_.list_trials(study_, 0, 1'000'000, LevelDetail::none);
    if (!trials) return tl::unexpected(trials.error());
    bool all_ended = true;
    for (const auto& trial : *trials) {
      all_ended = all_ended && has_ended(trial.state);
      if (trial.state != TrialState::paused) continue;
      if (auto decided = decide(trial.number, trial.level); !decided)
        return tl::unexpected(decided.error());
    }
    if (!all_ended) std::this_thread::sleep_for(5ms);
    return all_ended;
  }

  StudyStore& studies_;
  std::string study_;
  std::string name_;
};

int fail_with(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

int work(std::span<char*> arguments) {
  const auto store = open_store(arguments[0]);
  if (!store) return fail_with(store.error());
  Worker worker((*store)->studies(), arguments[1], arguments[2]);
  for (;;) {
    const auto done = worker.step();
    if (!done) return fail_with(done.error());
    if (*done) return 0;
  }
}

}  // namespace
}  // namespace fleetfit::store

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return fleetfit::store::work(std::span(argv, 4).subspan(1));
}
