// How quick the store is with the trials of a study, and whether it stays so:
//   study_store_bench [TRIALS]       1,000,000 if not said; the file is made in TMPDIR
// bench/study_store_bench.py runs it beside Optuna's storage.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/file.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/store/store.h"

namespace fleetfit::bench {
namespace {

using store::Claim;
using store::LevelEnd;
using store::TrialDecision;
using store::TrialRecord;
using store::TrialState;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBatch = 1000;
constexpr std::int64_t kWindow = 100'000;  ///< trials of one line of the table
constexpr std::int64_t kSingles = 2000;

store::Time now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The life of trials: they are added, claimed, end a level, and get a score and their end.
class Bench {
 public:
  explicit Bench(store::StudyStore& studies) : studies_(studies) {}

  Status add(std::int64_t count) {
    std::vector<TrialRecord> trials;
    for (std::int64_t i = 0; i < count; ++i)
      trials.push_back(
          {.number = next_++,
           .params = fmt::format(
               R"({{"layers":18,"batch_size":{},"learning_rate":{},"momentum":{},"threads":2}})",
               32 + i % 480, random_.uniform(), random_.uniform())});
    FLEETFIT_ASSIGN(const auto added, studies_.add_trials("bench", trials));
    return added ? Status{} : fail(ErrorCode::internal, "somebody else added trials");
  }

  Status work(std::int64_t count) {
    FLEETFIT_ASSIGN(const auto claimed,
                    studies_.claim_trials("bench", "worker", now(), now() + std::chrono::minutes(1),
                                          static_cast<std::size_t>(count)));
    std::vector<LevelEnd> ends;
    std::vector<TrialDecision> decisions;
    for (const auto& trial : claimed) {
      ends.push_back(end_of(trial));
      decisions.emplace_back(
          store::SaveScore{.trial = trial.number, .score = -ends.back().level.accuracy});
      decisions.emplace_back(store::EndTrial{.trial = trial.number, .state = TrialState::finished});
    }
    FLEETFIT_TRY(studies_.end_levels(ends));
    FLEETFIT_TRY(studies_.decide("bench", decisions));
    return {};
  }

  // Seconds that `count` trials take in batches of `batch`.
  Result<double> time(std::int64_t count, std::int64_t batch) {
    const auto start = Clock::now();
    for (std::int64_t done = 0; done < count; done += batch) {
      FLEETFIT_TRY(add(batch));
      FLEETFIT_TRY(work(batch));
    }
    return seconds_since(start);
  }

 private:
  LevelEnd end_of(const TrialRecord& trial) {
    return {.claim = {.study = "bench",
                      .trial = trial.number,
                      .worker = "worker",
                      .attempt = trial.attempts},
            .level = {.epochs = 4,
                      .accuracy = random_.uniform(),
                      .loss = random_.uniform(),
                      .training_s = 12.5,
                      .metrics = R"({"f1":0.5})",
                      .epoch_values = "[0.5,0.625,0.75,0.8125]",
                      .worker = "worker",
                      .started = now(),
                      .ended = now()},
            .model_file = "model.onnx"};
  }

  store::StudyStore& studies_;
  core::Random random_{1};
  std::int64_t next_ = 0;
};

template <class Call>
Status print_time(std::string_view what, const Call& call) {
  const auto start = Clock::now();
  FLEETFIT_TRY(call());
  fmt::print("{:<44} {:>10.2f} ms\n", what, 1000 * seconds_since(start));
  return {};
}

Status print_singles(Bench& bench, std::int64_t stored) {
  FLEETFIT_ASSIGN(const auto seconds, bench.time(kSingles, 1));
  fmt::print("{:<44} {:>10.0f} trials/s\n", fmt::format("one by one, {} trials stored", stored),
             static_cast<double>(kSingles) / seconds);
  return {};
}

Status print_batches(Bench& bench, std::int64_t trials) {
  for (std::int64_t stored = 0; stored < trials; stored += kWindow) {
    const auto count = std::min(kWindow, trials - stored);
    FLEETFIT_ASSIGN(const auto seconds, bench.time(count, std::min(kBatch, count)));
    fmt::print("{:<44} {:>10.0f} trials/s\n",
               fmt::format("batches of {}, up to {} trials", kBatch, stored + count),
               static_cast<double>(count) / seconds);
    std::fflush(stdout);
  }
  return {};
}

Status print_questions(store::StudyStore& studies) {
  FLEETFIT_ASSIGN(const auto counts, studies.count_trials("bench"));
  const std::int64_t newest = std::max<std::int64_t>(counts.all() - 10'000, 0);
  FLEETFIT_ASSIGN(const auto last, studies.find_trial("bench", counts.all() - 1));
  const std::int64_t before = last->change - 100;
  const auto steps = {
      print_time("counts by state", [&] { return studies.count_trials("bench"); }),
      print_time("best 10", [&] { return studies.best_trials("bench", 10); }),
      print_time(
          "newest 10,000 with their levels",
          [&] { return studies.list_trials("bench", newest, 10'000, store::LevelDetail::all); }),
      print_time("last 100 changes", [&] { return studies.list_changes("bench", before, 100); })};
  for (const auto& step : steps)
    if (!step) return step;
  return {};
}

Status run(std::int64_t trials, const std::filesystem::path& folder) {
  const auto file = folder / "bench.db";
  FLEETFIT_ASSIGN(const auto store, store::open_store("sqlite:" + file.string()));
  auto& studies = store->studies();
  FLEETFIT_TRY(studies.create_study({.name = "bench", .created = now()}));
  Bench bench(studies);
  FLEETFIT_TRY(print_singles(bench, 0));
  FLEETFIT_TRY(print_batches(bench, trials));
  FLEETFIT_TRY(print_singles(bench, trials));
  FLEETFIT_TRY(print_questions(studies));
  fmt::print("{:<44} {:>10.1f} MB\n", "file",
             static_cast<double>(std::filesystem::file_size(file)) / 1e6);
  return {};
}

int main_with(std::span<char*> arguments) {
  const std::int64_t trials = arguments.size() > 1 ? std::atoll(arguments[1]) : 1'000'000;
  const auto folder = core::ScratchFolder::create();
  if (!folder) {
    fmt::print(stderr, "{}\n", folder.error().message);
    return 1;
  }
  const auto done = run(trials, folder->path());
  if (done) return 0;
  fmt::print(stderr, "{}\n", done.error().message);
  return 1;
}

}  // namespace
}  // namespace fleetfit::bench

int main(int argc, char** argv) {
  return fleetfit::bench::main_with(std::span(argv, static_cast<std::size_t>(argc)));
}
