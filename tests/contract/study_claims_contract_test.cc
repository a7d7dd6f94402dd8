#include "tests/contract/study_store_contract.h"

#include <gmock/gmock.h>

#include <mutex>
#include <set>
#include <thread>

/// What every store must do when workers take trials and end them.
namespace fleetfit::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StudyClaimsContract : public StudyStoreContract {};

// Workers

TEST_P(StudyClaimsContract, GivesTheQueuedTrialOfTheLowestNumberToOneWorker) {
  add(queued_trials(0, 2));
  const auto claimed = studies().claim_trial("s", "a", date(0), date(10)).value().value();
  EXPECT_EQ(claimed.number, 0);
  EXPECT_EQ(claimed.state, TrialState::running);
  EXPECT_EQ(claimed.worker, "a");
  EXPECT_EQ(claimed.attempts, 1);
  EXPECT_EQ(claimed.lease_until, date(10));
  EXPECT_EQ(claimed, trial(0));
  EXPECT_EQ(studies().claim_trial("s", "b", date(0), date(10)).value()->number, 1);
  EXPECT_EQ(studies().claim_trial("s", "c", date(9), date(10)).value(), std::nullopt);
  EXPECT_EQ(studies().count_trials("s").value(), (TrialCounts{.running = 2}));
  EXPECT_EQ(refusal(studies().claim_trial("s", "", date(), date())), "claim: worker is empty");
}

TEST_P(StudyClaimsContract, GivesSeveralTrialsAtOnce) {
  add(queued_trials(0, 3));
  EXPECT_THAT(numbers(studies().claim_trials("s", "a", date(0), date(10), 2).value()),
              ElementsAre(0, 1));
  EXPECT_THAT(numbers(studies().claim_trials("s", "b", date(10), date(20), 9).value()),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(studies().claim_trials("s", "c", date(11), date(20), 9).value(), IsEmpty());
}

TEST_P(StudyClaimsContract, GivesADeadWorkersTrialToTheNextBeforeNewOnes) {
  add(queued_trials(0, 3));
  const auto dead = take("a", date(0));
  const auto alive = take("b", date(0));
  ASSERT_EQ(studies().renew(alive, date(5000), ""), Hold::held);
  const auto taken = studies().claim_trial("s", "c", date(1000), date(2000)).value().value();
  EXPECT_EQ(taken.number, dead.trial);
  EXPECT_EQ(taken.attempts, 2);
  EXPECT_EQ(taken.worker, "c");
  EXPECT_EQ(studies().claim_trial("s", "d", date(1000), date(2000)).value()->number, 2);
}

TEST_P(StudyClaimsContract, LetsNobodyTakeARunningTrialWithoutALease) {
  add({{.number = 0, .state = TrialState::running, .attempts = 1, .worker = "by hand"}});
  EXPECT_EQ(studies().claim_trial("s", "a", date(1'000'000'000), date()).value(), std::nullopt);
  const Claim claim{.study = "s", .trial = 0, .worker = "by hand", .attempt = 1};
  EXPECT_EQ(studies().end_level(claim, plain_level(), ""), Hold::held);
}

TEST_P(StudyClaimsContract, WritesNothingForAWorkerThatWasTakenForDead) {
  add(queued_trials(0, 1));
  const auto dead = take("a", date(0));
  ASSERT_EQ(studies().renew(dead, date(1000), ""), Hold::held);
  const auto heir = take("b", date(1000));
  const auto before = trial(0);
  EXPECT_EQ(studies().renew(dead, date(9000), ""), Hold::lost);
  EXPECT_EQ(studies().save_structure(dead, "beef", "a.onnx"), Hold::lost);
  EXPECT_EQ(studies().end_level(dead, example_level(), "a.onnx"), Hold::lost);
  EXPECT_EQ(studies().give_up(dead, TrialState::failed, "dead"), Hold::lost);
  EXPECT_EQ(studies().give_back(dead), Hold::lost);
  EXPECT_EQ(trial(0), before);
  EXPECT_EQ(studies().end_level(heir, example_level(), "b.onnx"), Hold::held);
}

TEST_P(StudyClaimsContract, TellsAWorkersSecondClaimOfATrialFromItsFirst) {
  add(queued_trials(0, 1));
  const auto first = take("a", date(0));
  const auto second = take("a", date(2000));
  EXPECT_EQ(studies().renew(first, date(9000), ""), Hold::lost);
  EXPECT_EQ(studies().renew(second, date(9000), ""), Hold::held);
}

TEST_P(StudyClaimsContract, PausesATrialThatHasEndedALevel) {
  add(queued_trials(0, 1));
  const auto claim = take("host:1");
  EXPECT_EQ(studies().save_structure(claim, "beef", "early.onnx"), Hold::held);
  EXPECT_EQ(trial(0).structure, "beef");
  EXPECT_EQ(trial(0).model_file, "early.onnx");
  EXPECT_EQ(studies().end_level(claim, example_level(0), "out.onnx"), Hold::held);
  const auto paused = trial(0);
  EXPECT_EQ(paused.state, TrialState::paused);
  EXPECT_EQ(paused.lease_until, std::nullopt);
  EXPECT_EQ(paused.model_file, "out.onnx");
  EXPECT_EQ(paused.structure, "beef");
  EXPECT_THAT(paused.levels, ElementsAre(example_level(0)));
  EXPECT_EQ(studies().count_trials("s").value(), (TrialCounts{.paused = 1}));
  EXPECT_EQ(studies().end_level(claim, example_level(0), "out.onnx"), Hold::lost);
  EXPECT_EQ(studies().claim_trial("s", "a", date(1'000'000), date()).value(), std::nullopt);
}

TEST_P(StudyClaimsContract, TakesATrialThroughItsLevels) {
  add(queued_trials(0, 1));
  ASSERT_EQ(studies().end_level(take("a"), example_level(0), ""), Hold::held);
  EXPECT_EQ(studies().queue_level("s", 0, 2), true);
  EXPECT_EQ(trial(0).state, TrialState::queued);
  EXPECT_EQ(trial(0).level, 2);
  EXPECT_EQ(studies().queue_level("s", 0, 3), false) << "it is not paused";
  const auto claim = take("b");
  EXPECT_EQ(claim.attempt, 2);
  EXPECT_EQ(refusal(studies().end_level(claim, example_level(1), "")),
            "trial 0: it is in level 2, not in 1");
  ASSERT_EQ(studies().end_level(claim, example_level(2), ""), Hold::held);
  EXPECT_EQ(refusal(studies().queue_level("s", 0, 2)), "trial 0: level 2 cannot follow level 2");
  EXPECT_EQ(studies().end_trial("s", 0, TrialState::finished, ""), true);
  EXPECT_EQ(studies().end_trial("s", 0, TrialState::stopped, ""), false);
  EXPECT_EQ(trial(0).state, TrialState::finished);
  EXPECT_THAT(trial(0).levels, ElementsAre(example_level(0), example_level(2)));
  EXPECT_EQ(studies().count_trials("s").value(), (TrialCounts{.finished = 1}));
}

TEST_P(StudyClaimsContract, EndsSeveralLevelsInOneStep) {
  add(queued_trials(0, 3));
  const LevelEnd first{.claim = take("a"), .level = example_level(), .model_file = "a"};
  LevelEnd second{.claim = take("a"), .level = example_level(), .model_file = "b"};
  LevelEnd lost = second;
  lost.claim.worker = "somebody else";
  EXPECT_THAT(studies().end_levels(std::vector{first, lost, second}).value(),
              ElementsAre(Hold::held, Hold::lost, Hold::held));
  EXPECT_EQ(trial(1).model_file, "b");

  const LevelEnd good{.claim = take("a"), .level = example_level()};
  second.claim.trial = 77;
  EXPECT_EQ(absence(studies().end_levels(std::vector{good, second})), "study 's' has no trial 77");
  EXPECT_EQ(trial(2).state, TrialState::running) << "nothing is written if one fails";
  EXPECT_THAT(studies().end_levels({}).value(), IsEmpty());
}

TEST_P(StudyClaimsContract, EndsATrialThatItsWorkerGivesUp) {
  add(queued_trials(0, 2));
  EXPECT_EQ(studies().give_up(take("a"), TrialState::failed, "exit status 3"), Hold::held);
  EXPECT_EQ(trial(0).state, TrialState::failed);
  EXPECT_EQ(trial(0).reason, "exit status 3");
  EXPECT_EQ(trial(0).lease_until, std::nullopt);
  const auto claim = take("a");
  EXPECT_EQ(refusal(studies().give_up(claim, TrialState::failed, "")),
            "trial: reason is empty though the trial has failed");
  EXPECT_EQ(refusal(studies().give_up(claim, TrialState::finished, "x")),
            "trial: state is finished, which a worker cannot say");
  EXPECT_EQ(trial(1).state, TrialState::running);
}

TEST_P(StudyClaimsContract, PutsATrialBackAsIfItHadNotBeenTaken) {
  add(queued_trials(0, 2));
  EXPECT_EQ(studies().give_back(take("a")), Hold::held);
  const auto back = trial(0);
  EXPECT_EQ(back.state, TrialState::queued);
  EXPECT_EQ(back.attempts, 0);
  EXPECT_EQ(back.worker, "");
  EXPECT_EQ(back.lease_until, std::nullopt);
  EXPECT_EQ(take("b").trial, 0);
}

// Stopping

TEST_P(StudyClaimsContract, AsksTheWorkerToStop) {
  add(queued_trials(0, 1));
  EXPECT_EQ(studies().request_stop("s", 0, "too slow"), false) << "nobody has it";
  const auto claim = take("a");
  EXPECT_EQ(studies().request_stop("s", 0, "too slow"), true);
  EXPECT_TRUE(trial(0).stop_requested);
  EXPECT_EQ(studies().renew(claim, date(10), ""), Hold::stop_requested);
  EXPECT_EQ(studies().give_up(claim, TrialState::stopped, ""), Hold::stop_requested);
  EXPECT_EQ(trial(0).state, TrialState::stopped);
  EXPECT_EQ(trial(0).reason, "too slow");
  EXPECT_FALSE(trial(0).stop_requested);
}

TEST_P(StudyClaimsContract, StopsATrialWhoseLevelEndsBeforeItsWorkerHears) {
  add(queued_trials(0, 2));
  const auto first = take("a");
  ASSERT_EQ(studies().request_stop("s", 0, "too slow"), true);
  EXPECT_EQ(studies().end_level(first, example_level(), "x"), Hold::stop_requested);
  EXPECT_EQ(trial(0).state, TrialState::stopped);
  EXPECT_EQ(trial(0).reason, "too slow");
  EXPECT_THAT(trial(0).levels, ElementsAre(example_level()));

  const auto second = take("a");
  ASSERT_EQ(studies().request_stop("s", 1, "too slow"), true);
  EXPECT_EQ(studies().give_back(second), Hold::stop_requested);
  EXPECT_EQ(trial(1).state, TrialState::stopped);
}

TEST_P(StudyClaimsContract, TellsTheNextWorkerThatATrialIsToStop) {
  add(queued_trials(0, 1));
  take("a", date(0));
  ASSERT_EQ(studies().request_stop("s", 0, "too slow"), true);
  const auto heir = studies().claim_trial("s", "b", date(1000), date(2000)).value().value();
  EXPECT_TRUE(heir.stop_requested);
  EXPECT_EQ(heir.reason, "too slow");
}

TEST_P(StudyClaimsContract, EndsTrialsThatNobodyHas) {
  add(queued_trials(0, 2));
  EXPECT_EQ(studies().end_trial("s", 0, TrialState::stopped, "latency on local"), true);
  EXPECT_EQ(trial(0).reason, "latency on local");
  take("a");
  EXPECT_EQ(studies().end_trial("s", 1, TrialState::stopped, "x"), false) << "it is running";
  EXPECT_EQ(refusal(studies().end_trial("s", 1, TrialState::paused, "")),
            "trial 1: state is paused, which is no end");
  EXPECT_EQ(refusal(studies().end_trial("s", 1, TrialState::failed, "")),
            "trial 1: reason is empty though the trial has failed");
}

// Decisions and scores

TEST_P(StudyClaimsContract, MakesSeveralDecisionsInOneStep) {
  add(queued_trials(0, 2));
  ASSERT_EQ(studies().end_level(take("a"), example_level(), ""), Hold::held);
  const std::vector<TrialDecision> decisions = {
      SaveScore{.trial = 0, .score = 4}, QueueLevel{.trial = 0, .level = 1},
      EndTrial{.trial = 0, .state = TrialState::stopped, .reason = "enough"},
      QueueLevel{.trial = 0, .level = 2}, QueueLevel{.trial = 1, .level = 1}};
  EXPECT_THAT(studies().decide("s", decisions).value(),
              ElementsAre(true, true, true, false, false));
  EXPECT_EQ(trial(0).state, TrialState::stopped);
  EXPECT_EQ(trial(0).score, 4);
  EXPECT_EQ(trial(0).level, 1);
  EXPECT_EQ(studies().count_trials("s").value(), (TrialCounts{.queued = 1, .stopped = 1}));
  EXPECT_THAT(studies().decide("s", {}).value(), IsEmpty());
}

TEST_P(StudyClaimsContract, DecidesNothingIfOneDecisionFails) {
  add(queued_trials(0, 1));
  const auto before = trial(0);
  const std::vector<TrialDecision> decisions = {SaveScore{.trial = 0, .score = 4},
                                                EndTrial{.trial = 0, .state = TrialState::stopped},
                                                SaveScore{.trial = 9, .score = 4}};
  EXPECT_EQ(absence(studies().decide("s", decisions)), "study 's' has no trial 9");
  EXPECT_EQ(trial(0), before);
  EXPECT_EQ(studies().count_trials("s").value(), (TrialCounts{.queued = 1}));
}

// Threads

TEST_P(StudyClaimsContract, GivesEachTrialToOneOfManyThreads) {
  constexpr std::int64_t kTrials = 60;
  add(queued_trials(0, kTrials));
  std::mutex mutex;
  std::multiset<std::int64_t> taken;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i)
      workers.emplace_back([&, worker = "w" + std::to_string(i)] {
        while (const auto claimed =
                   studies().claim_trial("s", worker, date(), date(1000)).value()) {
          const Claim claim{.study = "s",
                            .trial = claimed->number,
                            .worker = worker,
                            .attempt = claimed->attempts};
          EXPECT_EQ(studies().end_level(claim, plain_level(), ""), Hold::held);
          const std::scoped_lock lock(mutex);
          taken.insert(claimed->number);
        }
      });
  }
  EXPECT_EQ(taken.size(), static_cast<std::size_t>(kTrials));
  EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), static_cast<std::size_t>(kTrials));
  EXPECT_EQ(studies().count_trials("s").value(), (TrialCounts{.paused = kTrials}));
  EXPECT_EQ(last_change(), 3 * kTrials);
}

INSTANTIATE_TEST_SUITE_P(Kinds, StudyClaimsContract, all_kinds(), name_of_kind);

}  // namespace
}  // namespace fleetfit::store
