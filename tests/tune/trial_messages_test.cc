#include "tune/executors/trial_messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fleetfit::tune {
namespace {

TEST(TrialMessages, TheDocumentHasWhatTheProtocolSays) {
  const TrialJob job{.study = "s\"1",
                     .trial = 7,
                     .params = R"({"lr": 0.5, "net": "b"})",
                     .budget = {.epochs = 4, .data_fraction = 0.2},
                     .checkpoint_folder = "/c/7",
                     .resume = true,
                     .seed = 9};
  const auto document = nlohmann::json::parse(trial_document(job).value());
  EXPECT_EQ(document, nlohmann::json::parse(R"({"study": "s\"1", "trial": 7,
      "params": {"lr": 0.5, "net": "b"}, "budget": {"epochs": 4, "data_fraction": 0.2},
      "checkpoint_dir": "/c/7", "resume": true, "seed": 9})"));
}

TEST(TrialMessages, ParametersThatAreNoJsonAreRefused) {
  EXPECT_FALSE(trial_document({.params = "{"}).has_value());
}

TEST(TrialMessages, AnEpochMayLackNumbers) {
  const auto message = parse_trial_line(R"({"epoch": 3, "loss": 1.5})");
  const auto& epoch = std::get<EpochReport>(message);
  EXPECT_EQ(epoch.epoch, 3);
  EXPECT_FALSE(epoch.accuracy.has_value());
  EXPECT_EQ(epoch.loss, 1.5);
}

TEST(TrialMessages, NaNOfAnEpochIsAMissingNumber) {
  const auto message = parse_trial_line(R"({"epoch": 1, "accuracy": NaN, "loss": -Infinity})");
  EXPECT_FALSE(std::get<EpochReport>(message).accuracy.has_value());
  EXPECT_FALSE(std::get<EpochReport>(message).loss.has_value());
}

TEST(TrialMessages, AResultKeepsFurtherNumbers) {
  const auto message = parse_trial_line(
      R"({"result": {"accuracy": 0.5, "loss": 2, "f1": 0.25, "note": "x", "model": "NaN.onnx"}})");
  const auto& result = std::get<ResultMessage>(message);
  EXPECT_EQ(result.accuracy, 0.5);
  EXPECT_EQ(result.loss, 2);
  EXPECT_EQ(result.other, (std::map<std::string, double>{{"f1", 0.25}}));
  EXPECT_EQ(result.model_file, "NaN.onnx");
}

TEST(TrialMessages, ResultsWithoutAFiniteAccuracyAreWrong) {
  for (const auto* line :
       {R"({"result": {"accuracy": NaN}})", R"({"result": {"accuracy": Infinity}})",
        R"({"result": {"accuracy": "high"}})", R"({"result": {"loss": 1}})", R"({"result": 3})",
        R"({"result": {"accuracy": 0.5, "model": 7}})"})
    EXPECT_TRUE(std::holds_alternative<WrongMessage>(parse_trial_line(line))) << line;
}

TEST(TrialMessages, AModelBeforeTheEnd) {
  const auto message = parse_trial_line(R"({"model": "a.onnx"})");
  EXPECT_EQ(std::get<ModelMessage>(message).file, "a.onnx");
}

TEST(TrialMessages, ProgressIsOneLineOfSomeLength) {
  const auto message = parse_trial_line(R"({"progress": "half\nof it"})");
  EXPECT_EQ(std::get<ProgressMessage>(message).text, "half of it");
  const auto line = fmt::format(R"({{"progress": "{}"}})", std::string(501, 'x'));
  EXPECT_TRUE(std::holds_alternative<LogLine>(parse_trial_line(line)));
}

TEST(TrialMessages, EverythingElseIsLog) {
  for (const auto* line : {"", "hello", "{", "[1]", "{\"epoch\": \"one\"}", "{\"step\": 3}",
                           "\xff\xfe", "{\"epoch\": 1", "3", "null", "{\"epoch\": NaN}"})
    EXPECT_TRUE(std::holds_alternative<LogLine>(parse_trial_line(line))) << line;
}

}  // namespace
}  // namespace fleetfit::tune
