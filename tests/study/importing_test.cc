#include "fleetfit/study/importing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/file.h"
#include "fleetfit/store/store.h"
#include "fleetfit/tune/study.h"
#include "tests/core/temporary_folder.h"
#include "tests/source_dir.h"
#include "tests/store/example_records.h"
#include "tests/store/raw_database.h"

namespace fleetfit::study {
namespace {

using store::TrialState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Brings in what tests/store/databases/optuna3.py has made.
class ImportOptuna : public testing::Test {
 protected:
  void SetUp() override {
    const auto sql = core::read_file(source_dir() + "/tests/store/databases/optuna3.sql");
    store::RawDatabase(path_).execute(sql.value());
  }

  ImportedStudy imported(const ImportOptions& options) {
    auto study = import_optuna_study(place_, options);
    EXPECT_TRUE(study) << study.error().message;
    return study.value_or(ImportedStudy{});
  }

  std::string refusal(const ImportOptions& options) {
    const auto study = import_optuna_study(place_, options);
    return study ? "accepted" : study.error().message;
  }

  std::vector<store::TrialRecord> trials(std::string_view study) {
    return place_.studies.list_trials(study, 0, 1000, store::LevelDetail::all).value();
  }

  core::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "optuna.db";
  core::SystemClock clock_;
  std::unique_ptr<store::Store> store_ = store::open_store("memory:").value();
  StudyPlace place_{.studies = store_->studies(), .clock = clock_};
};

TEST_F(ImportOptuna, MakesAStudyFileOfTheDistributions) {
  const auto study = imported(
      {.file = path_, .study = "mixed", .name = "new", .command = {"python3", "my train.py"}});
  EXPECT_EQ(study.definition,
            "# Brought in from Optuna's study \"mixed\".\n"
            "name: \"new\"\n"
            "workload:\n"
            "  command: [\"python3\",\"my train.py\"]\n"
            "parameters:\n"
            "  training:\n"
            "    \"learning_rate\": {range: [1e-05, 0.1], log: true}\n"
            "    \"layers\": {range: [1, 8], integer: true}\n"
            "    \"optimizer\": {values: [\"adam\", \"sgd\", \"None\", 3, true]}\n"
            "    \"dropout\": {values: [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]}\n"
            "    \"width\": {range: [16, 256], integer: true, log: true}\n"
            "    \"batch\": {values: [8, 16, 24, 32, 40, 48, 56, 64]}\n"
            "    \"momentum\": {range: [0.5, 0.99], when: {\"optimizer\": [\"sgd\"]}}\n"
            "objective: {maximize: accuracy}\n"
            "budget: {kind: epochs, min_epochs: 3, max_epochs: 3, max_trials: 74}\n"
            "algorithm: {model: tpe}\n");
  const auto record = place_.studies.find_study("new").value().value();
  EXPECT_EQ(record.definition, study.definition);
  EXPECT_EQ(record.tuning_s, 7.5);
  EXPECT_FALSE(record.done);
}

TEST_F(ImportOptuna, BringsInTrialsThatHaveEnded) {
  const auto study = imported({.file = path_, .study = "mixed"});
  EXPECT_EQ(study.name, "mixed");
  EXPECT_EQ(study.trials, (store::TrialCounts{.finished = 5, .stopped = 1, .failed = 2}));
  EXPECT_EQ(study.left_out, 2) << "one was running, one waiting";

  const auto all = trials("mixed");
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(nlohmann::json::parse(all[1].params),
            nlohmann::json::parse(R"({"learning_rate": 0.013107856769680891, "layers": 2,
                "optimizer": "sgd", "dropout": 0.2, "width": 18, "batch": 64,
                "momentum": 0.7137118569711008})"));
  EXPECT_EQ(all[1].score, -0.5625);
  EXPECT_EQ(all[1].state, TrialState::finished);
  EXPECT_THAT(all[1].levels, ElementsAre(store::LevelRecord{.epochs = 3,
                                                            .accuracy = 0.5625,
                                                            .training_s = 1.5,
                                                            .epoch_values = "[0.0,0.25,0.5]",
                                                            .worker = "optuna",
                                                            .started = store::date(0),
                                                            .ended = store::date(1500)}));
  EXPECT_EQ(all[3].state, TrialState::stopped);
  EXPECT_EQ(all[3].reason, "pruned by Optuna after 2 steps");
  EXPECT_EQ(all[3].score, std::nullopt);
  EXPECT_EQ(all[4].reason, "it failed in Optuna");
  EXPECT_EQ(all[5].reason, "its value is not finite");
  EXPECT_EQ(place_.studies.best_trials("mixed", 1)->front().number, 7);
}

TEST_F(ImportOptuna, BringsInTrialsThatTheStudyFileCanRead) {
  const auto study = imported({.file = path_, .study = "mixed"});
  const auto parsed = tune::parse_study(study.definition, "study.yaml").value();
  for (const auto& trial : trials("mixed")) {
    const auto params = nlohmann::json::parse(trial.params);
    EXPECT_TRUE(parsed.parameters.from_json(core::JsonView(params, "params"))) << trial.params;
  }
}

TEST_F(ImportOptuna, BringsInSeveralObjectives) {
  const auto study = imported({.file = path_, .study = "pareto"});
  EXPECT_THAT(study.definition, HasSubstr("objective: [{maximize: value_0}, {minimize: value_1}]"));
  EXPECT_THAT(study.definition, HasSubstr("algorithm: {model: nsga2}"));
  EXPECT_EQ(nlohmann::json::parse(trials("pareto")[0].levels[0].metrics),
            nlohmann::json::parse(R"({"value_0": 0.9670298390136767, "value_1": 2.5})"));
}

TEST_F(ImportOptuna, TakesAValueThatIsMinimizedForALoss) {
  store::RawDatabase(path_).execute("UPDATE study_directions SET direction = 'MINIMIZE'");
  const auto study = imported({.file = path_, .study = "mixed"});
  EXPECT_THAT(study.definition, HasSubstr("objective: {minimize: loss}"));
  EXPECT_EQ(trials("mixed")[0].levels[0].loss, 0.5);
  EXPECT_EQ(place_.studies.best_trials("mixed", 1)->front().number, 0);
}

TEST_F(ImportOptuna, WidensARangeThatChangedOnTheWay) {
  store::RawDatabase(path_).execute(
      "UPDATE trial_params SET distribution_json = replace(distribution_json, '\"high\": 8', "
      "'\"high\": 12') WHERE param_name = 'layers' AND trial_id > 3;"
      "UPDATE trial_params SET param_value = 12 WHERE param_name = 'layers' AND trial_id = 7");
  const auto study = imported({.file = path_, .study = "mixed"});
  EXPECT_THAT(study.definition, HasSubstr("\"layers\": {range: [1, 12], integer: true}"));
  EXPECT_EQ(study.trials.all(), 8);
}

TEST_F(ImportOptuna, LeavesOutTrialsThatLackAParameterWithoutACause) {
  store::RawDatabase(path_).execute(
      "DELETE FROM trial_params WHERE param_name = 'width' AND trial_id = 8");
  const auto study = imported({.file = path_, .study = "mixed"});
  EXPECT_EQ(study.trials.finished, 4);
  EXPECT_EQ(study.left_out, 3);
}

TEST_F(ImportOptuna, RefusesWhatItCannotBringIn) {
  EXPECT_EQ(refusal({.file = path_}),
            path_.string() + ": it has 2 studies, name one of them: mixed, pareto");
  EXPECT_EQ(refusal({.file = path_, .study = "x"}), path_.string() + ": it has no study 'x'");
  EXPECT_THAT(refusal({.file = path_, .study = "mixed", .name = "a/b"}), HasSubstr("name"));
  imported({.file = path_, .study = "mixed"});
  EXPECT_EQ(refusal({.file = path_, .study = "mixed"}), "there is a study 'mixed' already");
  EXPECT_EQ(trials("mixed").size(), 8u);
  store::RawDatabase(path_).execute("DELETE FROM trial_params");
  EXPECT_EQ(refusal({.file = path_, .study = "mixed", .name = "b"}),
            path_.string() + ": study 'mixed': no trial has parameters");
}

}  // namespace
}  // namespace fleetfit::study
