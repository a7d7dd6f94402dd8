#include "fleetfit/study/studies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"
#include "fleetfit/store/store.h"
#include "tests/core/temporary_folder.h"
#include "tests/study/example_study.h"

namespace fleetfit::study {
namespace {

using store::TrialState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr std::string_view kAccuracy = R"(name: plain
parameters: {model: {layers: {values: [18, 34]}}, training: {rate: {range: [0, 1]}}}
objective: {maximize: accuracy}
constraints: {accuracy: 0.5}
budget: {kind: epochs, min_epochs: 1, max_epochs: 4, max_trials: 100}
algorithm: {model: random}
)";

constexpr std::string_view kPareto = R"(name: plain
parameters: {model: {layers: {values: [18, 34]}}}
objective: [{maximize: accuracy}, {minimize: size}]
budget: {kind: epochs, max_epochs: 4}
algorithm: {model: random}
)";

class Studies : public testing::Test {
 protected:
  core::SystemClock clock_;
  std::unique_ptr<store::Store> store_ = store::open_store("memory:").value();
  StudyPlace place_{.studies = store_->studies(), .clock = clock_};

  void create(std::string_view definition) {
    ASSERT_TRUE(
        place_.studies.create_study({.name = "plain", .definition = std::string(definition)}));
  }

  /// A trial that has ended level 2 (4 epochs), or level 0 if it was stopped.
  static store::TrialRecord trial(std::int64_t number, TrialState state, double accuracy) {
    const std::int64_t level = state == TrialState::finished ? 2 : 0;
    store::TrialRecord record{.number = number,
                              .params = R"({"layers":34,"rate":0.25})",
                              .level = level,
                              .state = state,
                              .attempts = 1};
    if (state == TrialState::failed) record.reason = "it broke";
    if (state == TrialState::failed || state == TrialState::queued) return record;
    record.levels = {{.level = level, .epochs = 4, .accuracy = accuracy, .training_s = 2}};
    if (accuracy >= 0.5) record.score = -accuracy;
    return record;
  }

  void add(const std::vector<store::TrialRecord>& trials) {
    ASSERT_TRUE(place_.studies.add_trials("plain", trials).value());
  }
};

TEST_F(Studies, AreListedWithTheirTrials) {
  create(kAccuracy);
  add({trial(0, TrialState::finished, 0.8), trial(1, TrialState::failed, 0),
       trial(2, TrialState::queued, 0)});
  const auto list = list_studies(place_.studies).value();
  ASSERT_THAT(list, SizeIs(1));
  EXPECT_EQ(list[0].study.name, "plain");
  EXPECT_EQ(list[0].trials.all(), 3);
  EXPECT_EQ(list[0].best_accuracy, 0.8);
}

TEST_F(Studies, ShowTrialsAsTheContractSays) {
  create(kAccuracy);
  add({trial(0, TrialState::finished, 0.8), trial(1, TrialState::stopped, 0.4),
       trial(2, TrialState::failed, 0), trial(3, TrialState::queued, 0)});
  const auto json = to_json(show_study(place_.studies, "plain").value());
  EXPECT_EQ(json["name"], "plain");
  EXPECT_EQ(json["trials_total"], 4);
  EXPECT_EQ(json["inference_tunings"], 0);
  std::vector<std::string> statuses;
  for (const auto& one : json["trials"]) statuses.push_back(one["status"]);
  EXPECT_THAT(statuses, ElementsAre("finished", "stopped", "failed", "waiting"));
  const auto& first = json["trials"][0];
  EXPECT_EQ(first["trial"], 0);
  EXPECT_EQ(first["params"]["layers"], 34);
  EXPECT_EQ(first["budget"]["epochs"], 4);
  EXPECT_EQ(first["accuracy"], 0.8);
  EXPECT_EQ(first["objective"]["accuracy"], 0.8);
  EXPECT_EQ(first["feasible"], true);
  EXPECT_EQ(json["trials"][1]["feasible"], false);
  EXPECT_EQ(json["trials"][2]["reason"], "it broke");
  EXPECT_EQ(json["trials"][3]["accuracy"], nullptr);
}

TEST_F(Studies, ShowTheNewestTrialsUnlessAllAreWanted) {
  create(kAccuracy);
  std::vector<store::TrialRecord> trials;
  for (std::int64_t i = 0; i < 10'020; ++i) trials.push_back(trial(i, TrialState::queued, 0));
  add(trials);
  const auto newest = show_study(place_.studies, "plain").value();
  ASSERT_THAT(newest.trials, SizeIs(10'000));
  EXPECT_EQ(newest.trials.front().record.number, 20);
  EXPECT_EQ(newest.counts.all(), 10'020);
  EXPECT_THAT(show_study(place_.studies, "plain", {.all = true}).value().trials, SizeIs(10'020));
}

TEST_F(Studies, CountTrialsOfRungs) {
  create(kAccuracy);
  auto climbed = trial(0, TrialState::finished, 0.8);
  climbed.levels.insert(climbed.levels.begin(),
                        store::LevelRecord{.level = 0, .epochs = 1, .accuracy = 0.6});
  add({climbed, trial(1, TrialState::stopped, 0.7)});
  const auto rungs = show_study(place_.studies, "plain").value().rungs;
  ASSERT_THAT(rungs, SizeIs(2));
  EXPECT_EQ(rungs[0].ended, 2);
  EXPECT_EQ(rungs[0].promoted, 1);
  EXPECT_EQ(rungs[0].best_accuracy, 0.7);
  EXPECT_EQ(rungs[1].ended, 1);
  EXPECT_EQ(rungs[1].promoted, 0);
}

TEST_F(Studies, BestIsATrialThatWasTrainedToTheEnd) {
  create(kAccuracy);
  add({trial(0, TrialState::finished, 0.8), trial(1, TrialState::stopped, 0.95),
       trial(2, TrialState::finished, 0.85)});
  EXPECT_EQ(best_of_study(place_.studies, "plain").value().best->trial.record.number, 2);
}

TEST_F(Studies, BestIsAnyTrialWhileNoneWasTrainedToTheEnd) {
  create(kAccuracy);
  add({trial(0, TrialState::stopped, 0.7), trial(1, TrialState::stopped, 0.95)});
  EXPECT_EQ(best_of_study(place_.studies, "plain").value().best->trial.record.number, 1);
}

TEST_F(Studies, BestGivesParametersByGroup) {
  create(kAccuracy);
  add({trial(0, TrialState::finished, 0.8)});
  const auto json = to_json(best_of_study(place_.studies, "plain").value());
  EXPECT_EQ(json["params"]["model"]["layers"], 34);
  EXPECT_EQ(json["params"]["training"]["rate"], 0.25);
  EXPECT_EQ(json["params"]["system"], nlohmann::ordered_json::object());
  EXPECT_EQ(json["accuracy"], 0.8);
  EXPECT_EQ(json["tuning"]["time_s"], 0);
}

TEST_F(Studies, NameTheNearestTrialIfNoneKeepsTheLimits) {
  create(kAccuracy);
  add({trial(0, TrialState::finished, 0.2), trial(1, TrialState::finished, 0.45),
       trial(2, TrialState::failed, 0)});
  const auto best = best_of_study(place_.studies, "plain").value();
  EXPECT_FALSE(best.best);
  ASSERT_TRUE(best.nearest);
  EXPECT_EQ(best.nearest->trial.record.number, 1);
  EXPECT_THAT(best.why_none, HasSubstr("accuracy 0.45, at least 0.5"));
  EXPECT_EQ(to_json(best)["trial"], nullptr);
}

TEST_F(Studies, GiveTheParetoSetAndItsKnee) {
  create(kPareto);
  const auto with_size = [](std::int64_t number, double accuracy, int size) {
    auto record = trial(number, TrialState::finished, accuracy);
    record.params = R"({"layers":18})";
    record.levels[0].metrics = "{\"size\":" + std::to_string(size) + "}";
    return record;
  };
  // Trial 2 is worse than 3 in both. Scaled to their ranges, 3 is 0.25 + 0.0625 away from the best
  // of both, squared, the ends of the set 1.
  add({with_size(0, 0.9, 10), with_size(1, 0.8, 2), with_size(2, 0.7, 5), with_size(3, 0.85, 4)});
  const auto best = best_of_study(place_.studies, "plain").value();
  std::vector<std::int64_t> set;
  for (const auto& candidate : best.pareto) set.push_back(candidate.trial.record.number);
  EXPECT_THAT(set, ElementsAre(0, 3, 1));
  EXPECT_EQ(best.best->trial.record.number, 3);
  EXPECT_THAT(best.best->trial.values, ElementsAre(0.85, 4));
  EXPECT_THAT(to_json(best)["pareto"], SizeIs(3));
}

TEST_F(Studies, ThatDoNotExistAreNamed) {
  for (const auto& error :
       {show_study(place_.studies, "gone").error(), best_of_study(place_.studies, "gone").error(),
        remove_study(place_.studies, "gone").error()}) {
    EXPECT_EQ(error.code, ErrorCode::not_found);
    EXPECT_THAT(error.message, HasSubstr("gone"));
  }
}

TEST_F(Studies, AreExportedWithOneRowForEachTrial) {
  create(kAccuracy);
  add({trial(0, TrialState::finished, 0.8), trial(1, TrialState::failed, 0)});
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "trials.csv";
  EXPECT_EQ(export_study(place_.studies, "plain", file).value().trials, 2);
  const auto table = core::read_csv(file).value();
  ASSERT_EQ(table.rows(), 2U);
  const auto cell = [&table](std::size_t row, std::string_view column) {
    return table.cell(row, table.column(column).value());
  };
  EXPECT_EQ(cell(0, "status"), "finished");
  EXPECT_EQ(cell(0, "layers"), "34");
  EXPECT_EQ(cell(0, "rate"), "0.25");
  EXPECT_EQ(cell(0, "accuracy"), "0.8");
  EXPECT_EQ(cell(0, "objective: accuracy"), "0.8");
  EXPECT_EQ(cell(0, "limits_kept"), "yes");
  EXPECT_EQ(cell(1, "accuracy"), "");
  EXPECT_EQ(cell(1, "reason"), "it broke");
}

TEST_F(Studies, SayHowToDeployTheBestNetwork) {
  fill_study(*store_, kExampleStudy, {.count = 100});
  const auto json = to_json(best_of_study(place_.studies, "fashion").value());
  ASSERT_THAT(json["inference"], SizeIs(2));
  EXPECT_EQ(json["inference"][0]["device"], "local");
  EXPECT_EQ(json["inference"][0]["params"]["batch_size"], 8);
  EXPECT_EQ(json["inference"][1]["device"], "phone");
  EXPECT_EQ(json["inference"][1]["params"]["cores"], 2);
  EXPECT_GT(json["inference"][1]["latency_ms"], 0);
  EXPECT_LE(json["inference"][1]["latency_ms"], 60);  // a limit of the study
  EXPECT_EQ(json["inference"][1]["throughput"], 32);
  EXPECT_EQ(json["inference"][1]["source"], "measured");
  EXPECT_EQ(to_json(show_study(place_.studies, "fashion").value())["inference_tunings"], 18);
}

class Report : public Studies {
 protected:
  std::string page(std::string_view study) {
    const auto file = folder_.path() / "report.html";
    written_ = report_study(place_.studies, study, file).value();
    return core::read_file(file).value();
  }

  WrittenReport written_;

 private:
  core::TemporaryFolder folder_;
};

TEST_F(Report, HasAllPartsOfAStudy) {
  fill_study(*store_, kExampleStudy, {.count = 150});
  const auto text = page("fashion");
  for (const auto* title : {"What to deploy", "History", "Accuracy against latency",
                            "Importance of parameters", "Parameters of all trials", "Rungs",
                            "Workers", "Failed trials", "Stopped trials", "What it cost"})
    EXPECT_THAT(text, HasSubstr(std::string("<h2>") + title + "</h2>"));
  EXPECT_THAT(text, HasSubstr("CUDA out of memory"));
  EXPECT_EQ(written_.trials_seen, 150);
}

TEST_F(Report, ShowsTheParetoSetOfSeveralObjectives) {
  fill_study(*store_, several_objectives(), {.count = 150});
  EXPECT_THAT(page("pareto"), HasSubstr("<h2>Pareto set</h2>"));
}

TEST_F(Report, NeedsNothingFromElsewhere) {
  fill_study(*store_, kExampleStudy, {.count = 50});
  const auto text = page("fashion");
  for (const auto* part : {"http", "src=", "<script", "@import", "url(h"})
    EXPECT_THAT(text, Not(HasSubstr(part)));
}

TEST_F(Report, OfALargeStudySaysFromWhichTrialsItIsMade) {
  create(kAccuracy);
  std::vector<store::TrialRecord> trials;
  for (std::int64_t i = 0; i < 12'000; ++i)
    trials.push_back(trial(i, TrialState::finished, i == 6'789 ? 0.99 : 0.7));
  add(trials);
  const auto text = page("plain");
  EXPECT_LT(written_.trials_seen, 12'000);
  EXPECT_THAT(text, HasSubstr("12000 trials"));
  EXPECT_THAT(text, HasSubstr("This page is made from"));
  EXPECT_THAT(text, HasSubstr("Trial 6789"));  // the best, wherever it is
}

TEST_F(Report, OfAStudyWithoutTrialsIsAPage) {
  create(kAccuracy);
  EXPECT_THAT(page("plain"), HasSubstr("No trial keeps all limits"));
}

TEST_F(Report, EscapesWhatTrialsSay) {
  create(kAccuracy);
  auto broken = trial(0, TrialState::failed, 0);
  broken.reason = "<b>broken</b>";
  add({broken});
  EXPECT_THAT(page("plain"), HasSubstr("&lt;b&gt;broken"));
}

}  // namespace
}  // namespace fleetfit::study
