#include "fleetfit/workloads/workloads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace fleetfit::workloads {
namespace {

const Workload& workload(std::string_view name) { return *find_workload(name).value(); }

std::string document(const std::string& params, const std::string& budget = R"({"epochs": 2})") {
  return R"({"study": "s", "trial": 7, "params": )" + params + R"(, "budget": )" + budget +
         R"(, "checkpoint_dir": "/tmp/x", "resume": true})";
}

std::string refusal(const std::string& text) {
  const auto request = read_trial(workload("resnet-fashion-mnist"), text);
  EXPECT_FALSE(request.has_value());
  return request ? "" : request.error().message;
}

TEST(Workloads, AreKnownByName) {
  for (const char* const name :
       {"resnet-fashion-mnist", "resnet-cifar10", "m5-spoken-digits", "rnn-ag-news", "yolo-scenes"})
    EXPECT_EQ(workload(name).name, name);
  const auto none = find_workload("resnet-mars");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::not_found);
  EXPECT_NE(none.error().message.find("yolo-scenes"), std::string::npos);
}

TEST(Workloads, SayWhatTheyTake) {
  for (const auto& each : all_workloads()) {
    std::set<std::string> names;
    for (const auto& setting : each.settings) {
      EXPECT_TRUE(names.insert(setting.name).second) << each.name << " " << setting.name;
      EXPECT_FALSE(setting.summary.empty()) << setting.name;
      EXPECT_GE(setting.preset, setting.kind == SettingKind::text ? 0 : setting.min);
      EXPECT_LE(setting.preset, setting.max) << setting.name;
    }
    for (const char* const common :
         {"batch_size", "learning_rate", "momentum", "weight_decay", "threads", "compute", "data"})
      EXPECT_TRUE(names.contains(common)) << each.name << " " << common;
  }
}

TEST(Workloads, ExampleStudyVariesParametersThatTheWorkloadTakes) {
  for (const auto& each : all_workloads()) {
    const auto study = example_study(each);
    EXPECT_NE(study.find("builtin: " + each.name), std::string::npos);
    for (const auto& [group, lines] : each.usual_parameters) {
      for (const auto& line : lines) {
        EXPECT_NE(study.find(line), std::string::npos);
        const auto name = line.substr(0, line.find(':'));
        const auto found = std::ranges::find(each.settings, name, &Setting::name);
        ASSERT_NE(found, each.settings.end()) << name;
        EXPECT_EQ(found->group, group) << name;
      }
    }
  }
}

TEST(TrialRequest, TakesWhatIsGivenAndPresetsForTheRest) {
  const auto request =
      read_trial(workload("resnet-fashion-mnist"),
                 document(R"({"layers": 34, "learning_rate": 0.5, "compute": "cuda"})",
                          R"({"epochs": 4, "data_fraction": 0.25})"))
          .value();
  EXPECT_EQ(request.epochs, 4);
  EXPECT_EQ(request.data_fraction, 0.25);
  EXPECT_EQ(request.checkpoint_dir, "/tmp/x");
  EXPECT_TRUE(request.resume);
  EXPECT_EQ(request.trial, 7);
  EXPECT_EQ(request.settings.integer("layers"), 34);
  EXPECT_EQ(request.settings.number("learning_rate"), 0.5);
  EXPECT_EQ(request.settings.text("compute"), "cuda");
  EXPECT_EQ(request.settings.number("width"), 0.25);
  EXPECT_EQ(request.settings.text("data"), "fashion-mnist");
}

TEST(TrialRequest, KeyTellsWhatIsTrainedAndNotHow) {
  const auto key = [](const std::string& params) {
    return read_trial(workload("resnet-fashion-mnist"), document(params)).value().settings.key();
  };
  EXPECT_EQ(key(R"({"layers": 18})"), key(R"({"threads": 2, "data": "idx:x"})"));
  EXPECT_NE(key(R"({"layers": 18})"), key(R"({"layers": 50})"));
  EXPECT_NE(key(R"({"learning_rate": 0.1})"), key(R"({"learning_rate": 0.10000001})"));
}

TEST(TrialRequest, RefusalsNameTheParameter) {
  EXPECT_NE(refusal(document(R"({"layer": 18})")).find("layer: resnet-fashion-mnist takes no"),
            std::string::npos);
  EXPECT_NE(refusal(document(R"({"layers": 19})")).find("layers: 19 is none of 18, 34, 50"),
            std::string::npos);
  EXPECT_NE(refusal(document(R"({"layers": "x"})")).find("layers"), std::string::npos);
  EXPECT_NE(refusal(document(R"({"batch_size": 1.5})")).find("batch_size: 1.5 is no whole"),
            std::string::npos);
  EXPECT_NE(refusal(document(R"({"learning_rate": 0})")).find("learning_rate: 0 is not between"),
            std::string::npos);
  EXPECT_NE(refusal(document(R"({"compute": "tpu"})")).find("compute: 'tpu' is none of cpu, cuda"),
            std::string::npos);
}

TEST(TrialRequest, StudysSeedIsThatOfTheTrial) {
  const auto seed = [](const std::string& text) {
    return read_trial(workload("yolo-scenes"), text).value().settings.integer("seed");
  };
  EXPECT_EQ(seed(R"({"budget": {"epochs": 1}, "checkpoint_dir": "x"})"), 1);
  EXPECT_EQ(seed(R"({"budget": {"epochs": 1}, "checkpoint_dir": "x", "seed": 9})"), 9);
  EXPECT_EQ(
      seed(R"({"budget": {"epochs": 1}, "checkpoint_dir": "x", "seed": 9, "params": {"seed": 4}})"),
      4);
}

TEST(TrialRequest, RefusalsNameTheField) {
  EXPECT_NE(refusal("{").find("FLEETFIT_TRIAL"), std::string::npos);
  EXPECT_NE(refusal("{}").find("budget"), std::string::npos);
  EXPECT_NE(refusal(document("{}", R"({"epochs": -1})")).find("budget.epochs"), std::string::npos);
  EXPECT_NE(refusal(document("{}", R"({"epochs": 1, "data_fraction": 0})")).find("data_fraction"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"budget": {"epochs": 1}})").find("checkpoint_dir"), std::string::npos);
}

}  // namespace
}  // namespace fleetfit::workloads
