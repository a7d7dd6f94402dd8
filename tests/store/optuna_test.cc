#include "fleetfit/store/optuna.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fleetfit/core/file.h"
#include "tests/core/temporary_folder.h"
#include "tests/source_dir.h"
#include "tests/store/example_records.h"
#include "tests/store/raw_database.h"

namespace fleetfit::store {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Kind = OptunaDistribution::Kind;

/// The file that tests/store/databases/optuna3.py has made.
class Optuna : public testing::Test {
 protected:
  void SetUp() override {
    const auto sql = core::read_file(source_dir() + "/tests/store/databases/optuna3.sql");
    RawDatabase(path_).execute(sql.value());
  }

  OptunaStudy read(std::string_view name) {
    auto study = read_optuna_study(path_, name);
    EXPECT_TRUE(study) << study.error().message;
    return study.value_or(OptunaStudy{});
  }

  // What is said of the study `mixed` after its file was changed.
  Error error_after(const std::string& sql) {
    const auto copy = folder_.path() / "changed.db";
    std::filesystem::copy_file(path_, copy, std::filesystem::copy_options::overwrite_existing);
    RawDatabase(copy).execute(sql);
    const auto study = read_optuna_study(copy, "mixed");
    return study ? Error{ErrorCode::internal, "accepted"} : study.error();
  }

  core::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "optuna.db";
};

TEST_F(Optuna, ListsTheStudiesOfAFile) {
  EXPECT_THAT(list_optuna_studies(path_).value(), ElementsAre("mixed", "pareto"));
}

TEST_F(Optuna, ReadsTrialsInAllStates) {
  using enum OptunaState;
  const auto study = read("mixed");
  EXPECT_EQ(study.name, "mixed");
  EXPECT_THAT(study.maximize, ElementsAre(true));
  std::vector<OptunaState> states;
  for (const auto& trial : study.trials) {
    EXPECT_EQ(trial.number, static_cast<std::int64_t>(states.size()));
    states.push_back(trial.state);
  }
  EXPECT_THAT(states, ElementsAre(complete, complete, complete, pruned, failed, complete, complete,
                                  complete, running, waiting));
  EXPECT_THAT(study.trials[1].values, ElementsAre(0.5625));
  EXPECT_THAT(study.trials[4].values, IsEmpty());
  EXPECT_THAT(study.trials[5].values, ElementsAre(INFINITY));
  EXPECT_THAT(study.trials[3].intermediate, ElementsAre(Pair(0, 0.0), Pair(1, 0.25)));
  EXPECT_EQ(study.trials[1].started, date(0));  // 2025-10-09 08:53:20 UTC
  EXPECT_EQ(study.trials[1].completed, date(1500));
  EXPECT_EQ(study.trials[8].completed, std::nullopt);
}

TEST_F(Optuna, ReadsParametersWithTheirDistributions) {
  const auto study = read("mixed");
  const auto& trial = study.trials[1];
  std::vector<std::string> names;
  for (const auto& parameter : trial.parameters) names.push_back(parameter.name);
  EXPECT_THAT(names, ElementsAre("learning_rate", "layers", "optimizer", "dropout", "width",
                                 "batch", "momentum"));
  const auto distribution = [&](std::size_t i) {
    return study.distributions[trial.parameters[i].distribution];
  };
  EXPECT_EQ(distribution(0), (OptunaDistribution{.low = 1e-5, .high = 0.1, .log = true}));
  EXPECT_EQ(distribution(1),
            (OptunaDistribution{.kind = Kind::integer, .low = 1, .high = 8, .step = 1}));
  EXPECT_EQ(distribution(2),
            (OptunaDistribution{.kind = Kind::categorical,
                                .choices = {"\"adam\"", "\"sgd\"", "null", "3", "true"}}));
  EXPECT_EQ(distribution(3), (OptunaDistribution{.low = 0, .high = 0.5, .step = 0.1}));
  EXPECT_EQ(
      distribution(4),
      (OptunaDistribution{.kind = Kind::integer, .low = 16, .high = 256, .step = 1, .log = true}));
  EXPECT_EQ(trial.parameters[0].value, 1.31078567696808912651e-02);
  EXPECT_EQ(trial.parameters[2].value, 1);
  EXPECT_EQ(trial.parameters[5].value, 64);
  EXPECT_EQ(study.distributions.size(), 7u) << "equal ones are kept once";
}

TEST_F(Optuna, ReadsSeveralObjectives) {
  const auto study = read("pareto");
  EXPECT_THAT(study.maximize, ElementsAre(true, false));
  ASSERT_EQ(study.trials.size(), 2u);
  EXPECT_THAT(study.trials[0].values, ElementsAre(9.67029839013676673076e-01, 2.5));
}

TEST_F(Optuna, WritesNothingIntoTheFile) {
  const auto before = core::read_file(path_).value();
  read("mixed");
  EXPECT_TRUE(core::read_file(path_).value() == before);
}

TEST_F(Optuna, NamesWhatIsNotThere) {
  const auto no_study = read_optuna_study(path_, "other");
  ASSERT_FALSE(no_study);
  EXPECT_EQ(no_study.error(),
            (Error{ErrorCode::not_found, path_.string() + ": it has no study 'other'"}));
  const auto no_file = list_optuna_studies(folder_.path() / "no.db");
  ASSERT_FALSE(no_file);
  EXPECT_EQ(no_file.error().code, ErrorCode::not_found);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "no.db"));
}

TEST_F(Optuna, RefusesFilesOfOtherPrograms) {
  const auto text = list_optuna_studies(folder_.file("a.txt", "a text that is no database at all"));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(text.error().message, HasSubstr("a.txt: it is not an SQLite database"));
  const auto empty = list_optuna_studies(folder_.file("empty.db", ""));
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, HasSubstr("empty.db: it is no file of Optuna"));
  EXPECT_FALSE(list_optuna_studies(folder_.path()));
  const auto older = error_after("UPDATE version_info SET schema_version = 8");
  EXPECT_EQ(older.code, ErrorCode::unsupported);
  EXPECT_THAT(older.message, HasSubstr("another version of Optuna than 3 (tables of version 8)"));
  EXPECT_EQ(error_after("DROP TABLE trial_values").code, ErrorCode::unsupported);
}

TEST_F(Optuna, NamesThePlaceOfWhatIsDamaged) {
  const auto said = [&](const std::string& sql) {
    const auto error = error_after(sql);
    EXPECT_THAT(error.code, AnyOf(ErrorCode::invalid_input, ErrorCode::unsupported));
    EXPECT_THAT(error.message, HasSubstr("changed.db: "));
    return error.message.substr(error.message.find("changed.db: ") + 12);
  };
  EXPECT_EQ(said("UPDATE trials SET state = 'LOST' WHERE trial_id = 2"),
            "trial 1: its state is 'LOST'");
  EXPECT_EQ(said("UPDATE trials SET datetime_start = '2025-13-01 00:00:00' WHERE trial_id = 2"),
            "trial 1: '2025-13-01 00:00:00' is no time");
  EXPECT_EQ(said("UPDATE study_directions SET direction = 'UP'"),
            "study: its direction 'UP' is neither MAXIMIZE nor MINIMIZE");
  EXPECT_EQ(said("DELETE FROM study_directions"), "study: it has no direction");
  EXPECT_EQ(said("UPDATE trial_params SET param_value = 5 WHERE param_id = 3"),
            "trial 0: parameter 'optimizer': 5 is the number of none of its choices");
  EXPECT_EQ(said("UPDATE trial_params SET param_value = 1.5 WHERE param_id = 2"),
            "trial 0: parameter 'layers': 1.5 is no whole number");
  EXPECT_EQ(said("UPDATE trial_params SET param_value = NULL WHERE param_id = 1"),
            "trial 0: parameter 'learning_rate': has no value");
  EXPECT_THAT(said("UPDATE trial_params SET distribution_json = '{' WHERE param_id = 1"),
              HasSubstr("trial 0: parameter 'learning_rate': distribution:1:"));
  EXPECT_THAT(said("UPDATE trial_params SET distribution_json = replace(distribution_json, "
                   "'FloatDistribution', 'UniformDistribution')"),
              HasSubstr("'UniformDistribution' is no distribution of Optuna 3"));
  EXPECT_THAT(said("UPDATE trial_params SET distribution_json = replace(distribution_json, "
                   "'\"low\": 1e-05', '\"low\": 3')"),
              HasSubstr("low is above high"));
  EXPECT_THAT(said("UPDATE trial_values SET objective = 1 WHERE trial_id = 1"),
              HasSubstr("it has a value of objective 1, of which there are 1"));
  EXPECT_THAT(said("UPDATE trial_values SET value_type = 'BIG'"),
              HasSubstr("trial 0: its value 0.5 is of the type 'BIG'"));
  EXPECT_THAT(said("ALTER TABLE trial_values DROP COLUMN value_type"),
              HasSubstr("its tables are not as they should be"));
}

TEST_F(Optuna, EndsWithAnErrorOrAStudyOnAnyDamage) {
  const auto whole = core::read_file(path_).value();
  std::minstd_rand random(1);
  for (int i = 0; i < 200; ++i) {
    auto damaged = whole;
    for (int j = 0; j < 20; ++j) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (i % 4 == 0) damaged.resize(random() % damaged.size());
    const auto study = read_optuna_study(folder_.file("damaged.db", damaged), "mixed");
    if (study) continue;
    EXPECT_THAT(study.error().message, HasSubstr("damaged.db"));
    EXPECT_EQ(study.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace fleetfit::store
