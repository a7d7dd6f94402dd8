#include "fleetfit/study/dialogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "fleetfit/core/file.h"
#include "fleetfit/store/store.h"
#include "fleetfit/study/studies.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::study {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kRandom = R"(name: s
parameters: {training: {x: {range: [0, 1]}}}
objective: {maximize: accuracy}
budget: {kind: epochs, min_epochs: 1, max_epochs: 4, eta: 2, max_trials: 4}
algorithm: {model: random}
)";

class Dialogue : public testing::Test {
 protected:
  core::SystemClock clock_;
  std::unique_ptr<store::Store> store_ = store::open_store("memory:").value();
  StudyPlace place_{.studies = store_->studies(), .clock = clock_};

  void create(std::string text) {
    const auto file = folder_.path() / "study.yaml";
    ASSERT_TRUE(core::write_file(file, text));
    const auto created = create_study(place_, file);
    ASSERT_TRUE(created) << created.error().message;
  }

  StudyDialogue open(const std::string& worker = "ask") {
    return StudyDialogue::open(place_, "s", {.worker = worker}).value();
  }

  static std::vector<ToldValues> accuracy(std::int64_t trial, double value) {
    return {{.trial = trial, .accuracy = value}};
  }

 private:
  core::TemporaryFolder folder_;
};

std::string with(std::string_view text, const std::string& old, const std::string& replacement) {
  std::string changed(text);
  return changed.replace(changed.find(old), old.size(), replacement);
}

TEST_F(Dialogue, GoesThroughAStudyUntilItIsDone) {
  create(std::string(kRandom));
  auto dialogue = open();
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto asked = dialogue.ask(1).value();
    ASSERT_THAT(asked.trials, SizeIs(1));
    EXPECT_EQ(asked.trials[0].trial, i);
    EXPECT_EQ(asked.trials[0].budget.epochs, 4);
    const auto told = dialogue.tell(accuracy(i, 0.5 + 0.1 * static_cast<double>(i))).value();
    EXPECT_EQ(told[0].status, "finished");
    EXPECT_DOUBLE_EQ(told[0].values[0], 0.5 + 0.1 * static_cast<double>(i));
  }
  const auto last = dialogue.ask(1).value();
  EXPECT_THAT(last.trials, IsEmpty());
  EXPECT_TRUE(last.done);
  EXPECT_EQ(best_of_study(place_.studies, "s").value().best->trial.record.number, 3);
  EXPECT_TRUE(list_studies(place_.studies).value()[0].study.done);
}

TEST_F(Dialogue, SharesTrialsWithOthers) {
  create(std::string(kRandom));
  auto first = open("a");
  EXPECT_EQ(first.ask(2).value().trials.size(), 2U);
  ASSERT_TRUE(first.let_others_decide());
  auto second = open("b");
  const auto asked = second.ask(5).value();
  ASSERT_THAT(asked.trials, SizeIs(2));  // of four
  EXPECT_EQ(asked.trials[0].trial, 2);
  EXPECT_FALSE(asked.done);
}

TEST_F(Dialogue, GivesTheSameTrialsWhereverItIsTakenUpAgain) {
  create(with(kRandom, "random", "tpe"));
  std::vector<std::string> alone;
  {
    auto dialogue = open();
    for (std::int64_t i = 0; i < 4; ++i) {
      alone.push_back(dialogue.ask(1).value().trials[0].params);
      ASSERT_TRUE(dialogue.tell(accuracy(i, 0.1 * static_cast<double>(i))));
    }
    ASSERT_TRUE(dialogue.settle());
  }
  ASSERT_TRUE(remove_study(place_.studies, "s"));
  create(with(kRandom, "random", "tpe"));
  for (std::int64_t i = 0; i < 4; ++i) {
    auto dialogue = open();
    EXPECT_EQ(dialogue.ask(1).value().trials[0].params, alone[static_cast<std::size_t>(i)]);
    ASSERT_TRUE(dialogue.tell(accuracy(i, 0.1 * static_cast<double>(i))));
    ASSERT_TRUE(dialogue.settle());
  }
}

TEST_F(Dialogue, PromotesTheBetterTrials) {
  create(with(with(kRandom, "random", "halving"), "max_trials: 4", "max_trials: 8"));
  auto dialogue = open();
  std::size_t resumed = 0;
  for (;;) {
    const auto asked = dialogue.ask(1).value();
    if (asked.trials.empty()) {
      EXPECT_TRUE(asked.done);
      break;
    }
    const auto& trial = asked.trials[0];
    if (trial.resume) ++resumed;
    // Later trials are better.
    ASSERT_TRUE(dialogue.tell(accuracy(trial.trial, 0.1 * static_cast<double>(trial.trial))));
  }
  ASSERT_TRUE(dialogue.settle());
  EXPECT_GE(resumed, 3U);
  const auto view = show_study(place_.studies, "s").value();
  EXPECT_EQ(view.counts.finished + view.counts.stopped, 8);
  EXPECT_GE(view.counts.stopped, 4);
  EXPECT_EQ(best_of_study(place_.studies, "s").value().best->trial.record.number, 7);
}

TEST_F(Dialogue, TakesFailures) {
  create(std::string(kRandom));
  auto dialogue = open();
  ASSERT_TRUE(dialogue.ask(1));
  const std::vector<ToldValues> failed = {{.trial = 0, .failed = "no memory"}};
  EXPECT_EQ(dialogue.tell(failed).value()[0].status, "failed");
  EXPECT_EQ(show_study(place_.studies, "s").value().trials[0].record.reason, "no memory");
}

TEST_F(Dialogue, RefusesWhatWasNotAskedFor) {
  create(std::string(kRandom));
  auto dialogue = open();
  EXPECT_THAT(dialogue.tell(accuracy(0, 0.5)).error().message, HasSubstr("no such trial"));
  ASSERT_TRUE(dialogue.ask(1));
  ASSERT_TRUE(dialogue.tell(accuracy(0, 0.5)));
  EXPECT_THAT(dialogue.tell(accuracy(0, 0.5)).error().message, HasSubstr("it is finished"));
}

TEST_F(Dialogue, RefusesResultsThatLackWhatTheObjectiveNeeds) {
  create(with(kRandom, "maximize: accuracy", "minimize: distance"));
  auto dialogue = open();
  ASSERT_TRUE(dialogue.ask(1));
  EXPECT_THAT(dialogue.tell(accuracy(0, 0.5)).error().message, HasSubstr("distance"));
  const std::vector<ToldValues> values = {{.trial = 0, .other = {{"distance", 2.5}}}};
  EXPECT_EQ(dialogue.tell(values).value()[0].values, std::vector{2.5});
}

TEST_F(Dialogue, TellsNothingIfOneOfManyIsWrong) {
  create(std::string(kRandom));
  auto dialogue = open();
  ASSERT_TRUE(dialogue.ask(2));
  const std::vector<ToldValues> values = {{.trial = 0, .accuracy = 0.5}, {.trial = 1}};
  EXPECT_FALSE(dialogue.tell(values));
  EXPECT_EQ(show_study(place_.studies, "s").value().counts.running, 2);
}

TEST_F(Dialogue, AnswersLinesOfJson) {
  create(std::string(kRandom));
  std::istringstream in(
      "{\"ask\": 2}\n"
      "{\"tell\": [{\"trial\": 0, \"values\": {\"accuracy\": 0.5}}, {\"trial\": 1, \"values\": "
      "{\"failed\": \"why\"}}]}\n"
      "{\"tell\": {\"trial\": 7, \"values\": {\"accuracy\": 0.5}}}\n"
      "nonsense\n"
      "{\"ask\": 0}\n"
      "{\"ask\": 1}\n");
  std::ostringstream out;
  ASSERT_TRUE(serve_study(place_, "s", {}, in, out));
  std::vector<nlohmann::json> answers;
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) answers.push_back(nlohmann::json::parse(line));
  ASSERT_THAT(answers, SizeIs(6));
  EXPECT_EQ(answers[0]["trials"].size(), 2U);
  EXPECT_EQ(answers[1]["told"][0]["status"], "finished");
  EXPECT_EQ(answers[1]["told"][1]["status"], "failed");
  EXPECT_THAT(answers[2]["error"].get<std::string>(), HasSubstr("trial 7"));
  EXPECT_TRUE(answers[3].contains("error"));
  EXPECT_TRUE(answers[4].contains("error"));
  EXPECT_EQ(answers[5]["trials"][0]["trial"], 2);
}

TEST(ToldLines, NameTheLineThatIsWrong) {
  std::istringstream in(
      "{\"trial\": 0, \"values\": {\"accuracy\": 0.5}}\n\n{\"trial\": 1, \"values\": "
      "{\"accuracy\": "
      "\"high\"}}\n");
  EXPECT_THAT(read_told_lines(in).error().message, HasSubstr("line 3: values.accuracy"));
}

}  // namespace
}  // namespace fleetfit::study
