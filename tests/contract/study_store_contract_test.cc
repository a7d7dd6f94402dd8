#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <thread>

#include "fleetfit/store/store.h"
#include "tests/contract/store_kinds.h"
#include "tests/core/temporary_folder.h"
#include "tests/store/example_studies.h"

/// What every store must do with studies, whatever it is made of.
namespace fleetfit::store {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class StudyStoreContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const auto url = GetParam().url(folder_.path());
    if (url.empty()) GTEST_SKIP() << "there is no server; tools/with-postgres starts one";
    auto opened = open_store(url);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    ASSERT_TRUE(studies().create_study(example_study("s")));
  }

  StudyStore& studies() { return store_->studies(); }

  void add(const std::vector<TrialRecord>& trials) {
    ASSERT_EQ(studies().add_trials("s", trials), true);
  }

  TrialRecord trial(std::int64_t number) {
    const auto found = studies().find_trial("s", number);
    EXPECT_TRUE(found && *found) << "trial " << number;
    return found.value().value_or(TrialRecord{});
  }

  // The claim of a trial that is taken now, for a second.
  Claim take(const std::string& worker, Time now = date()) {
    const auto claimed = studies().claim_trial("s", worker, now, now + 1s).value();
    EXPECT_TRUE(claimed) << "nothing to take";
    if (!claimed) return {};
    return {.study = "s", .trial = claimed->number, .worker = worker, .attempt = claimed->attempts};
  }

  std::vector<std::int64_t> best(std::size_t limit) {
    return numbers(studies().best_trials("s", limit).value());
  }

  static std::vector<std::int64_t> numbers(const std::vector<TrialRecord>& trials) {
    std::vector<std::int64_t> numbers;
    for (const auto& trial : trials) numbers.push_back(trial.number);
    return numbers;
  }

  std::vector<std::int64_t> changes_since(std::int64_t change) {
    return numbers(studies().list_changes("s", change, 1000).value());
  }

  std::int64_t last_change() {
    const auto changes = studies().list_changes("s", 0, 1000).value();
    return changes.empty() ? 0 : changes.back().change;
  }

 private:
  core::TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

template <class T>
std::string refusal(const Result<T>& result) {
  if (result) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::invalid_input);
  return result.error().message;
}

template <class T>
std::string absence(const Result<T>& result) {
  if (result) return "found";
  EXPECT_EQ(result.error().code, ErrorCode::not_found);
  return result.error().message;
}

// Studies

TEST_P(StudyStoreContract, GivesBackAStudyAsItWasCreated) {
  const StudyRecord study{.name = "größe 2",
                          .definition = "name: x\nbudget: {}\n",
                          .seed = std::numeric_limits<std::uint64_t>::max(),
                          .done = true,
                          .created = date(5),
                          .tuning_s = 1.5,
                          .tuning_j = 2.5};
  ASSERT_TRUE(studies().create_study(study));
  EXPECT_EQ(studies().find_study("größe 2").value(), study);
  EXPECT_EQ(studies().find_study("s").value(), example_study("s"));
  EXPECT_EQ(studies().find_study("t").value(), std::nullopt);
}

TEST_P(StudyStoreContract, HasOneStudyOfAName) {
  auto other = example_study("s");
  other.seed = 8;
  EXPECT_EQ(refusal(studies().create_study(other)), "there is a study 's' already");
  EXPECT_EQ(studies().find_study("s").value(), example_study("s"));
}

TEST_P(StudyStoreContract, ListsStudiesByName) {
  ASSERT_TRUE(studies().create_study(example_study("a")));
  ASSERT_TRUE(studies().create_study(example_study("Z")));
  EXPECT_THAT(studies().list_studies().value(),
              ElementsAre(example_study("Z"), example_study("a"), example_study("s")));
}

TEST_P(StudyStoreContract, RemovesAStudyWithItsTrials) {
  ASSERT_TRUE(studies().create_study(example_study("kept")));
  add({full_trial(0)});
  ASSERT_EQ(studies().add_trials("kept", queued_trials(0, 2)), true);
  EXPECT_EQ(studies().remove_study("s"), true);
  EXPECT_EQ(studies().remove_study("s"), false);
  ASSERT_TRUE(studies().create_study(example_study("s")));
  EXPECT_EQ(studies().count_trials("s").value(), TrialCounts{});
  EXPECT_EQ(studies().find_trial("s", 0).value(), std::nullopt);
  EXPECT_EQ(studies().count_trials("kept").value(), (TrialCounts{.queued = 2}));
}

TEST_P(StudyStoreContract, AddsUpWhatAStudyHasCost) {
  ASSERT_TRUE(studies().update_study("s", 2, std::nullopt, false));
  EXPECT_EQ(studies().find_study("s").value()->tuning_j, std::nullopt);
  ASSERT_TRUE(studies().update_study("s", 3, 10, true));
  ASSERT_TRUE(studies().update_study("s", 0.5, 5, true));
  const auto study = studies().find_study("s").value().value();
  EXPECT_EQ(study.tuning_s, 5.5);
  EXPECT_EQ(study.tuning_j, 15);
  EXPECT_TRUE(study.done);
  ASSERT_TRUE(studies().update_study("s", 0, std::nullopt, false));
  EXPECT_EQ(studies().find_study("s").value()->tuning_j, 15);
  EXPECT_FALSE(studies().find_study("s").value()->done);
}

TEST_P(StudyStoreContract, LetsOneTunerLeadAtATime) {
  EXPECT_EQ(studies().lead_study("s", "a", date(0), date(10)), true);
  EXPECT_EQ(studies().lead_study("s", "b", date(9), date(20)), false);
  EXPECT_EQ(studies().lead_study("s", "a", date(9), date(20)), true);
  EXPECT_EQ(studies().lead_study("s", "b", date(19), date(30)), false);
  EXPECT_EQ(studies().lead_study("s", "b", date(20), date(30)), true) << "the lease has run out";
  EXPECT_EQ(studies().lead_study("s", "a", date(21), date(40)), false);
  EXPECT_EQ(studies().lead_study("s", "b", date(22), date(22)), true) << "gives it back";
  EXPECT_EQ(studies().lead_study("s", "a", date(22), date(40)), true);
}

TEST_P(StudyStoreContract, RefusesStudiesThatBreakTheirFields) {
  const auto refused = [&](const StudyRecord& s) { return refusal(studies().create_study(s)); };
  EXPECT_EQ(refused({.name = ""}), "study: name is empty");
  EXPECT_EQ(refused({.name = "a", .definition = "\xff"}), "study: definition is not UTF-8");
  EXPECT_EQ(refused({.name = "a", .tuning_s = -1}), "study: tuning_s is -1, below zero");
  EXPECT_THAT(refused({.name = "a", .tuning_j = kNan}), HasSubstr("study: tuning_j is"));
  EXPECT_THAT(refusal(studies().update_study("s", kNan, 0, false)), HasSubstr("tuning_s"));
  EXPECT_EQ(refusal(studies().lead_study("s", "", date(), date())), "lead: tuner is empty");
  EXPECT_EQ(studies().list_studies()->size(), 1u);
}

// Adding and finding trials

TEST_P(StudyStoreContract, GivesBackEveryFieldOfATrial) {
  auto full = full_trial(0);
  TrialRecord plain{.number = 1};
  add({full, plain});
  full.change = 1;
  plain.change = 2;
  EXPECT_EQ(trial(0), full);
  EXPECT_EQ(trial(1), plain);
  EXPECT_EQ(studies().find_trial("s", 2).value(), std::nullopt);
  EXPECT_EQ(studies().find_trial("s", -1).value(), std::nullopt);
}

TEST_P(StudyStoreContract, TellsALevelsAbsentNumbersFromZero) {
  LevelRecord zero = plain_level(0);
  zero.loss = 0;
  zero.training_j = 0;
  add({{.number = 0, .level = 1, .state = TrialState::paused, .levels = {zero, plain_level(1)}}});
  EXPECT_THAT(trial(0).levels, ElementsAre(zero, plain_level(1)));
}

TEST_P(StudyStoreContract, AddsOnlyTheNextNumbers) {
  EXPECT_EQ(studies().add_trials("s", queued_trials(1, 1)), false);
  add(queued_trials(0, 2));
  EXPECT_EQ(studies().add_trials("s", queued_trials(1, 2)), false);
  EXPECT_EQ(studies().add_trials("s", queued_trials(3, 1)), false);
  const std::vector<TrialRecord> gap = {{.number = 2}, {.number = 4}};
  EXPECT_EQ(studies().add_trials("s", gap), false);
  EXPECT_EQ(studies().add_trials("s", {}), true);
  EXPECT_EQ(studies().count_trials("s")->all(), 2);
  add(queued_trials(2, 1));
  EXPECT_EQ(studies().count_trials("s")->all(), 3);
}

TEST_P(StudyStoreContract, AddsNoneOfTheTrialsIfOneIsWrong) {
  auto trials = queued_trials(0, 3);
  trials[2].params = "[]";
  EXPECT_EQ(refusal(studies().add_trials("s", trials)), "trial 2: params is not a JSON object");
  EXPECT_EQ(studies().count_trials("s").value(), TrialCounts{});
}

TEST_P(StudyStoreContract, RefusesTrialsThatBreakTheirFields) {
  const auto refused = [&](const std::function<void(TrialRecord&)>& change) {
    auto trial = full_trial(0);
    change(trial);
    const auto message = refusal(studies().add_trials("s", std::vector{trial}));
    EXPECT_EQ(studies().count_trials("s").value(), TrialCounts{});
    return message;
  };
  EXPECT_EQ(refused([](auto& t) { t.number = -1; }), "trial -1: number is -1, below zero");
  EXPECT_THAT(refused([](auto& t) { t.params = "{"; }), HasSubstr("trial 0: params:1:"));
  EXPECT_EQ(refused([](auto& t) { t.bracket = -1; }), "trial 0: bracket is -1, below zero");
  EXPECT_EQ(refused([](auto& t) { t.worker = ""; }),
            "trial 0: worker is empty though the trial is running");
  EXPECT_EQ(refused([](auto& t) { t.state = TrialState::queued; }),
            "trial 0: lease_until is there though the trial is not running");
  EXPECT_THAT(refused([](auto& t) { t.score = kNan; }), HasSubstr("trial 0: score is"));
  EXPECT_EQ(refused([](auto& t) { t.structure = "\xff"; }), "trial 0: structure is not UTF-8");
  EXPECT_EQ(refused([](auto& t) { t.level = 1; }), "trial 0: level is below one that it has ended");
  EXPECT_EQ(refused([](auto& t) { std::swap(t.levels[0], t.levels[1]); }),
            "trial 0: levels are not in increasing order");
  EXPECT_EQ(refused([](auto& t) { t.levels[1] = t.levels[0]; }),
            "trial 0: levels are not in increasing order");
  EXPECT_THAT(refused([](auto& t) { t.levels[1].accuracy = kNan; }),
              HasSubstr("trial 0: level 2: accuracy is"));
  EXPECT_EQ(refused([](auto& t) { t.levels[0].data_fraction = 1.5; }),
            "trial 0: level 1: data_fraction is 1.5, not from 0 to 1");
  EXPECT_EQ(refused([](auto& t) { t.levels[0].metrics = "1"; }),
            "trial 0: level 1: metrics is not a JSON object");
  EXPECT_EQ(refused([](auto& t) { t.levels[0].epoch_values = "{}"; }),
            "trial 0: level 1: epoch_values is not a JSON array");
  EXPECT_EQ(refused([](auto& t) {
              t.state = TrialState::failed;
              t.lease_until.reset();
              t.reason = "";
            }),
            "trial 0: reason is empty though the trial has failed");
}

TEST_P(StudyStoreContract, ListsTrialsByNumber) {
  auto trials = queued_trials(0, 5);
  trials[3] = full_trial(3);
  add(trials);
  using enum LevelDetail;
  EXPECT_THAT(numbers(studies().list_trials("s", 0, 100, none).value()),
              ElementsAre(0, 1, 2, 3, 4));
  const auto page = studies().list_trials("s", 2, 2, all).value();
  EXPECT_THAT(numbers(page), ElementsAre(2, 3));
  EXPECT_THAT(page[0].levels, IsEmpty());
  EXPECT_EQ(page[1], trial(3));
  EXPECT_THAT(studies().list_trials("s", 3, 1, none)->front().levels, IsEmpty());
  EXPECT_THAT(studies().list_trials("s", 5, 10, all).value(), IsEmpty());
  EXPECT_EQ(studies().list_trials("s", -7, std::numeric_limits<std::size_t>::max(), all)->size(),
            5u);
}

TEST_P(StudyStoreContract, CountsTrialsByState) {
  std::vector<TrialRecord> trials = queued_trials(0, 6);
  trials[1] = full_trial(1);
  trials[2].state = TrialState::paused;
  trials[3].state = TrialState::finished;
  trials[4].state = TrialState::stopped;
  trials[5].state = TrialState::failed;
  trials[5].reason = "no memory";
  add(trials);
  add(queued_trials(6, 1));
  EXPECT_EQ(studies().count_trials("s").value(),
            (TrialCounts{
                .queued = 2, .running = 1, .paused = 1, .finished = 1, .stopped = 1, .failed = 1}));
}

TEST_P(StudyStoreContract, NamesWhatDoesNotExist) {
  const Claim nowhere{.study = "t", .trial = 0, .worker = "w", .attempt = 1};
  const std::string no_study = "there is no study 't'";
  EXPECT_EQ(absence(studies().update_study("t", 0, 0, false)), no_study);
  EXPECT_EQ(absence(studies().lead_study("t", "a", date(), date())), no_study);
  EXPECT_EQ(absence(studies().add_trials("t", queued_trials(0, 1))), no_study);
  EXPECT_EQ(absence(studies().find_trial("t", 0)), no_study);
  EXPECT_EQ(absence(studies().list_changes("t", 0, 1)), no_study);
  EXPECT_EQ(absence(studies().list_trials("t", 0, 1, LevelDetail::all)), no_study);
  EXPECT_EQ(absence(studies().best_trials("t", 1)), no_study);
  EXPECT_EQ(absence(studies().count_trials("t")), no_study);
  EXPECT_EQ(absence(studies().claim_trial("t", "w", date(), date())), no_study);
  EXPECT_EQ(absence(studies().renew(nowhere, date())), no_study);
  EXPECT_EQ(absence(studies().end_level(nowhere, plain_level(), "")), no_study);
  EXPECT_EQ(absence(studies().give_back(nowhere)), no_study);
  EXPECT_EQ(absence(studies().queue_level("t", 0, 1)), no_study);
  EXPECT_EQ(absence(studies().request_stop("t", 0, "")), no_study);

  const Claim missing{.study = "s", .trial = 3, .worker = "w", .attempt = 1};
  const std::string no_trial = "study 's' has no trial 3";
  EXPECT_EQ(absence(studies().renew(missing, date())), no_trial);
  EXPECT_EQ(absence(studies().save_structure(missing, "x", "")), no_trial);
  EXPECT_EQ(absence(studies().end_level(missing, plain_level(), "")), no_trial);
  EXPECT_EQ(absence(studies().give_up(missing, TrialState::stopped, "")), no_trial);
  EXPECT_EQ(absence(studies().end_trial("s", 3, TrialState::stopped, "")), no_trial);
  EXPECT_EQ(absence(studies().save_score("s", 3, 1)), no_trial);
  EXPECT_EQ(absence(studies().request_stop("s", 3, "")), no_trial);
}

// Changes

TEST_P(StudyStoreContract, ListsChangesInTheirOrderEachTrialOnce) {
  add(queued_trials(0, 4));
  EXPECT_THAT(changes_since(0), ElementsAre(0, 1, 2, 3));
  const auto before = last_change();
  const auto claim = take("a");
  ASSERT_TRUE(studies().save_score("s", 2, 1.0));
  ASSERT_TRUE(studies().save_structure(claim, "beef", ""));
  EXPECT_THAT(changes_since(before), ElementsAre(2, 0));
  EXPECT_THAT(changes_since(0), ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(changes_since(last_change()), IsEmpty());
}

TEST_P(StudyStoreContract, ListsChangesInPieces) {
  add(queued_trials(0, 5));
  std::int64_t since = 0;
  std::vector<std::int64_t> seen;
  for (;;) {
    const auto piece = studies().list_changes("s", since, 2).value();
    if (piece.empty()) break;
    EXPECT_LE(piece.size(), 2u);
    for (const auto& changed : piece) {
      EXPECT_GT(changed.change, since);
      since = changed.change;
      seen.push_back(changed.number);
    }
  }
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4));
}

TEST_P(StudyStoreContract, ListsChangedTrialsWithTheirLevels) {
  add({full_trial(0)});
  EXPECT_THAT(studies().list_changes("s", 0, 1).value(), ElementsAre(trial(0)));
}

TEST_P(StudyStoreContract, TellsNobodyOfRenewedLeases) {
  add(queued_trials(0, 1));
  const auto claim = take("a");
  const auto before = last_change();
  EXPECT_EQ(studies().renew(claim, date(99'000)), Hold::held);
  EXPECT_THAT(changes_since(before), IsEmpty());
  EXPECT_EQ(trial(0).lease_until, date(99'000));
}

TEST_P(StudyStoreContract, KeepsTheChangesOfStudiesApart) {
  ASSERT_TRUE(studies().create_study(example_study("t")));
  add(queued_trials(0, 2));
  ASSERT_EQ(studies().add_trials("t", queued_trials(0, 1)), true);
  EXPECT_EQ(studies().list_changes("t", 0, 10)->size(), 1u);
  EXPECT_EQ(studies().claim_trial("t", "a", date(), date(1)).value()->number, 0);
  EXPECT_EQ(studies().count_trials("s").value(), (TrialCounts{.queued = 2}));
}

// Workers

TEST_P(StudyStoreContract, GivesTheQueuedTrialOfTheLowestNumberToOneWorker) {
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

TEST_P(StudyStoreContract, GivesSeveralTrialsAtOnce) {
  add(queued_trials(0, 3));
  EXPECT_THAT(numbers(studies().claim_trials("s", "a", date(0), date(10), 2).value()),
              ElementsAre(0, 1));
  EXPECT_THAT(numbers(studies().claim_trials("s", "b", date(10), date(20), 9).value()),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(studies().claim_trials("s", "c", date(11), date(20), 9).value(), IsEmpty());
}

TEST_P(StudyStoreContract, GivesADeadWorkersTrialToTheNextBeforeNewOnes) {
  add(queued_trials(0, 3));
  const auto dead = take("a", date(0));
  const auto alive = take("b", date(0));
  ASSERT_EQ(studies().renew(alive, date(5000)), Hold::held);
  const auto taken = studies().claim_trial("s", "c", date(1000), date(2000)).value().value();
  EXPECT_EQ(taken.number, dead.trial);
  EXPECT_EQ(taken.attempts, 2);
  EXPECT_EQ(taken.worker, "c");
  EXPECT_EQ(studies().claim_trial("s", "d", date(1000), date(2000)).value()->number, 2);
}

TEST_P(StudyStoreContract, LetsNobodyTakeARunningTrialWithoutALease) {
  add({{.number = 0, .state = TrialState::running, .attempts = 1, .worker = "by hand"}});
  EXPECT_EQ(studies().claim_trial("s", "a", date(1'000'000'000), date()).value(), std::nullopt);
  const Claim claim{.study = "s", .trial = 0, .worker = "by hand", .attempt = 1};
  EXPECT_EQ(studies().end_level(claim, plain_level(), ""), Hold::held);
}

TEST_P(StudyStoreContract, WritesNothingForAWorkerThatWasTakenForDead) {
  add(queued_trials(0, 1));
  const auto dead = take("a", date(0));
  ASSERT_EQ(studies().renew(dead, date(1000)), Hold::held);
  const auto heir = take("b", date(1000));
  const auto before = trial(0);
  EXPECT_EQ(studies().renew(dead, date(9000)), Hold::lost);
  EXPECT_EQ(studies().save_structure(dead, "beef", "a.onnx"), Hold::lost);
  EXPECT_EQ(studies().end_level(dead, example_level(), "a.onnx"), Hold::lost);
  EXPECT_EQ(studies().give_up(dead, TrialState::failed, "dead"), Hold::lost);
  EXPECT_EQ(studies().give_back(dead), Hold::lost);
  EXPECT_EQ(trial(0), before);
  EXPECT_EQ(studies().end_level(heir, example_level(), "b.onnx"), Hold::held);
}

TEST_P(StudyStoreContract, TellsAWorkersSecondClaimOfATrialFromItsFirst) {
  add(queued_trials(0, 1));
  const auto first = take("a", date(0));
  const auto second = take("a", date(2000));
  EXPECT_EQ(studies().renew(first, date(9000)), Hold::lost);
  EXPECT_EQ(studies().renew(second, date(9000)), Hold::held);
}

TEST_P(StudyStoreContract, PausesATrialThatHasEndedALevel) {
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

TEST_P(StudyStoreContract, TakesATrialThroughItsLevels) {
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

TEST_P(StudyStoreContract, EndsSeveralLevelsInOneStep) {
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

TEST_P(StudyStoreContract, EndsATrialThatItsWorkerGivesUp) {
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

TEST_P(StudyStoreContract, PutsATrialBackAsIfItHadNotBeenTaken) {
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

TEST_P(StudyStoreContract, AsksTheWorkerToStop) {
  add(queued_trials(0, 1));
  EXPECT_EQ(studies().request_stop("s", 0, "too slow"), false) << "nobody has it";
  const auto claim = take("a");
  EXPECT_EQ(studies().request_stop("s", 0, "too slow"), true);
  EXPECT_TRUE(trial(0).stop_requested);
  EXPECT_EQ(studies().renew(claim, date(10)), Hold::stop_requested);
  EXPECT_EQ(studies().give_up(claim, TrialState::stopped, ""), Hold::stop_requested);
  EXPECT_EQ(trial(0).state, TrialState::stopped);
  EXPECT_EQ(trial(0).reason, "too slow");
  EXPECT_FALSE(trial(0).stop_requested);
}

TEST_P(StudyStoreContract, StopsATrialWhoseLevelEndsBeforeItsWorkerHears) {
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

TEST_P(StudyStoreContract, TellsTheNextWorkerThatATrialIsToStop) {
  add(queued_trials(0, 1));
  take("a", date(0));
  ASSERT_EQ(studies().request_stop("s", 0, "too slow"), true);
  const auto heir = studies().claim_trial("s", "b", date(1000), date(2000)).value().value();
  EXPECT_TRUE(heir.stop_requested);
  EXPECT_EQ(heir.reason, "too slow");
}

TEST_P(StudyStoreContract, EndsTrialsThatNobodyHas) {
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

TEST_P(StudyStoreContract, MakesSeveralDecisionsInOneStep) {
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

TEST_P(StudyStoreContract, DecidesNothingIfOneDecisionFails) {
  add(queued_trials(0, 1));
  const auto before = trial(0);
  const std::vector<TrialDecision> decisions = {SaveScore{.trial = 0, .score = 4},
                                                EndTrial{.trial = 0, .state = TrialState::stopped},
                                                SaveScore{.trial = 9, .score = 4}};
  EXPECT_EQ(absence(studies().decide("s", decisions)), "study 's' has no trial 9");
  EXPECT_EQ(trial(0), before);
  EXPECT_EQ(studies().count_trials("s").value(), (TrialCounts{.queued = 1}));
}

TEST_P(StudyStoreContract, GivesTheBestTrialsOfEqualOnesTheOlder) {
  add(queued_trials(0, 5));
  EXPECT_THAT(best(10), IsEmpty());
  for (const auto& [number, score] : {std::pair(4, 2.0), {1, 2.0}, {0, 7.5}, {3, -1e300}})
    ASSERT_TRUE(studies().save_score("s", number, score));
  EXPECT_THAT(best(10), ElementsAre(3, 1, 4, 0));
  EXPECT_THAT(best(2), ElementsAre(3, 1));
  EXPECT_EQ(studies().best_trials("s", 1)->front(), trial(3));
  ASSERT_TRUE(studies().save_score("s", 3, std::nullopt));
  ASSERT_TRUE(studies().save_score("s", 0, 1.0));
  EXPECT_THAT(best(10), ElementsAre(0, 1, 4));
  EXPECT_THAT(refusal(studies().save_score("s", 0, kNan)), HasSubstr("trial 0: score is"));
}

TEST_P(StudyStoreContract, CountsAScoreThatIsSavedAgainAsNoChange) {
  add(queued_trials(0, 1));
  ASSERT_TRUE(studies().save_score("s", 0, 1.0));
  const auto before = trial(0);
  ASSERT_TRUE(studies().save_score("s", 0, 1.0));
  EXPECT_EQ(trial(0), before);
}

// Inference

InferenceRecord example_inference() {
  return {.structure = "beef",
          .device_fingerprint = "f00d",
          .question = "single",
          .device = "pi4",
          .result = R"({"latency_ms":3})",
          .failed = true,
          .elapsed_s = 1.5,
          .study = "s",
          .found = date(1)};
}

TEST_P(StudyStoreContract, KeepsHowANetworkIsBestRun) {
  const auto record = example_inference();
  ASSERT_TRUE(studies().save_inference(record));
  EXPECT_EQ(studies().find_inference("beef", "f00d", "single").value(), record);
  EXPECT_EQ(studies().find_inference("beef", "f00d", "offline").value(), std::nullopt);
  auto better = record;
  better.result = "{}";
  better.failed = false;
  ASSERT_TRUE(studies().save_inference(better));
  EXPECT_EQ(studies().find_inference("beef", "f00d", "single").value(), better);
  EXPECT_EQ(studies().remove_study("s"), true);
  EXPECT_EQ(studies().list_inferences("")->size(), 1u) << "kept for other studies";
}

TEST_P(StudyStoreContract, ListsInferencesNewestFirst) {
  auto record = example_inference();
  for (const int day : {2, 3, 1}) {
    record.question = std::to_string(day);
    record.found = date(day);
    record.study = day == 3 ? "t" : "s";
    ASSERT_TRUE(studies().save_inference(record));
  }
  const auto questions = [&](std::string_view study) {
    std::string text;
    const auto list = studies().list_inferences(study).value();
    for (const auto& one : list) text += one.question;
    return text;
  };
  EXPECT_EQ(questions("s"), "21");
  EXPECT_EQ(questions("t"), "3");
  EXPECT_EQ(questions(""), "321");
  EXPECT_EQ(questions("u"), "");
}

TEST_P(StudyStoreContract, RefusesInferencesThatBreakTheirFields) {
  const auto refused = [&](const std::function<void(InferenceRecord&)>& change) {
    auto record = example_inference();
    change(record);
    return refusal(studies().save_inference(record));
  };
  EXPECT_EQ(refused([](auto& r) { r.structure = ""; }), "inference: structure is empty");
  EXPECT_EQ(refused([](auto& r) { r.device_fingerprint = ""; }),
            "inference: device_fingerprint is empty");
  EXPECT_EQ(refused([](auto& r) { r.question = ""; }), "inference: question is empty");
  EXPECT_EQ(refused([](auto& r) { r.result = "3"; }), "inference: result is not a JSON object");
  EXPECT_EQ(refused([](auto& r) { r.elapsed_s = -1; }), "inference: elapsed_s is -1, below zero");
}

// Threads

TEST_P(StudyStoreContract, GivesEachTrialToOneOfManyThreads) {
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

INSTANTIATE_TEST_SUITE_P(Kinds, StudyStoreContract, all_kinds(), name_of_kind);

}  // namespace
}  // namespace fleetfit::store
