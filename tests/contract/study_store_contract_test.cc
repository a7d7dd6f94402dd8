#include "tests/contract/study_store_contract.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>

/// What every store must do with studies and their trials, whatever it is made of.
namespace fleetfit::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

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
  EXPECT_EQ(absence(studies().renew(nowhere, date(), "")), no_study);
  EXPECT_EQ(absence(studies().end_level(nowhere, plain_level(), "")), no_study);
  EXPECT_EQ(absence(studies().give_back(nowhere)), no_study);
  EXPECT_EQ(absence(studies().queue_level("t", 0, 1)), no_study);
  EXPECT_EQ(absence(studies().request_stop("t", 0, "")), no_study);

  const Claim missing{.study = "s", .trial = 3, .worker = "w", .attempt = 1};
  const std::string no_trial = "study 's' has no trial 3";
  EXPECT_EQ(absence(studies().renew(missing, date(), "")), no_trial);
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
  EXPECT_EQ(studies().renew(claim, date(99'000), "epoch 1 of 2"), Hold::held);
  EXPECT_THAT(changes_since(before), IsEmpty());
  EXPECT_EQ(trial(0).lease_until, date(99'000));
}

TEST_P(StudyStoreContract, KeepsWhatARunningTrialSaysOfItsProgress) {
  add(queued_trials(0, 1));
  const auto claim = take("a");
  ASSERT_EQ(studies().renew(claim, date(10), "epoch 1 of 2"), Hold::held);
  EXPECT_EQ(trial(0).progress, "epoch 1 of 2");
  const auto refused = studies().renew(claim, date(10), "\xff");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "trial: progress is not UTF-8");
  ASSERT_EQ(studies().give_back(claim), Hold::held);
  EXPECT_EQ(trial(0).progress, "");
}

TEST_P(StudyStoreContract, KeepsTheChangesOfStudiesApart) {
  ASSERT_TRUE(studies().create_study(example_study("t")));
  add(queued_trials(0, 2));
  ASSERT_EQ(studies().add_trials("t", queued_trials(0, 1)), true);
  EXPECT_EQ(studies().list_changes("t", 0, 10)->size(), 1u);
  EXPECT_EQ(studies().claim_trial("t", "a", date(), date(1)).value()->number, 0);
  EXPECT_EQ(studies().count_trials("s").value(), (TrialCounts{.queued = 2}));
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

TEST_P(StudyStoreContract, GivesFinishedTrialsBeforeThoseThatWereCutEarly) {
  auto trials = queued_trials(0, 4);
  trials[1].state = trials[3].state = TrialState::finished;
  trials[2].state = TrialState::stopped;
  add(trials);
  for (const auto& [number, score] : {std::pair(0, 1.0), {1, 9.0}, {2, 2.0}, {3, 8.0}})
    ASSERT_TRUE(studies().save_score("s", number, score));
  EXPECT_THAT(best(10), ElementsAre(3, 1, 0, 2));
  EXPECT_THAT(best(1), ElementsAre(3));
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

INSTANTIATE_TEST_SUITE_P(Kinds, StudyStoreContract, all_kinds(), name_of_kind);

}  // namespace
}  // namespace fleetfit::store
