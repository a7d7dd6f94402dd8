#include "fleetfit/app/inference_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "fleetfit/app/devices.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/structure.h"
#include "fleetfit/graph/zoo.h"
#include "tests/core/recording_progress.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::app {
namespace {

using testing::HasSubstr;

/// A device whose runtime runs nothing (it tells times of 1, 2, 3, … ms), in a store of its own.
class InferenceTuning : public testing::Test {
 protected:
  void SetUp() override {
    workplace_.emplace(open_workplace("memory:", clock_).value());
    add_device(std::string(FAKE_RUNTIME));
    model_ = write_model("net.onnx", 1);
  }

  void add_device(const std::string& command) {
    const auto added = app::add_device(
        *workplace_,
        {.name = "fake", .runtime = "exec:" + command, .existing = ExistingDevice::replace});
    ASSERT_TRUE(added) << added.error().message;
  }

  std::filesystem::path write_model(const std::string& name, std::uint64_t seed) const {
    const auto file = folder_.path() / name;
    const auto graph = graph::build_zoo_network("lenet5", {.seed = seed}).value();
    EXPECT_TRUE(graph::export_onnx_file(graph, file, core::Durability::scratch));
    return file;
  }

  InferenceRequest request(std::vector<tune::Parameter> parameters,
                           const tune::Scenario& scenario = {}) const {
    return {.model = model_,
            .study = {.devices = {"fake"},
                      .parameters = tune::Parameters::create(std::move(parameters)).value(),
                      .scenario = scenario},
            .seconds = 0.02,
            .study_name = "s"};
  }

  static tune::Parameter batches(std::vector<tune::Value> values) {
    return {.name = "batch_size", .group = tune::Group::inference, .values = std::move(values)};
  }

  Result<DeviceInference> tune(const InferenceRequest& request,
                               const std::string& device = "fake") {
    return tune_inference_on(*workplace_, request, device, progress_, {});
  }

  core::SystemClock clock_;
  core::RecordingProgress progress_;
  core::TemporaryFolder folder_;
  std::optional<Workplace> workplace_;
  std::filesystem::path model_;
};

constexpr tune::Scenario kOffline{.kind = tune::ScenarioKind::offline};

TEST_F(InferenceTuning, MeasuresEachSettingAndKeepsTheAnswer) {
  const auto found = tune(request({batches({std::int64_t{1}, std::int64_t{4}})}, kOffline)).value();
  EXPECT_FALSE(found.known);
  EXPECT_EQ(found.result.trials.size(), 2U);
  ASSERT_TRUE(found.result.best);
  EXPECT_EQ(found.result.trials[*found.result.best].setting.batch, 4);
  EXPECT_FALSE(found.result.trials[0].cost->predicted);
  EXPECT_GT(found.result.trials[0].cost->cost.latency_ms, 0);
  EXPECT_EQ(workplace_->store->studies().list_inferences("s").value().size(), 1U);
}

TEST_F(InferenceTuning, AsksNothingTwiceWhateverNamesAndWeights) {
  const auto question = request({batches({std::int64_t{1}, std::int64_t{4}})}, kOffline);
  const auto first = tune(question).value();
  auto same_network = question;
  same_network.model = write_model("other.onnx", 5);
  const auto second = tune(same_network).value();
  EXPECT_TRUE(second.known);
  EXPECT_EQ(second.result, first.result);
  EXPECT_EQ(second.structure, structure_of_model(model_).value());
  auto other_question = question;
  other_question.study.goal = tune::InferenceGoal::throughput;
  EXPECT_FALSE(tune(other_question).value().known);
  auto anew = question;
  anew.known = KnownAnswers::replace;
  EXPECT_FALSE(tune(anew).value().known);
}

TEST_F(InferenceTuning, SaysWhyASettingCannotBeTried) {
  const auto found = tune(request({{.name = "cores",
                                    .group = tune::Group::inference,
                                    .values = {std::int64_t{1}, std::int64_t{4000}}}}))
                         .value();
  ASSERT_EQ(found.result.trials.size(), 2U);
  EXPECT_TRUE(found.result.trials[0].cost);
  EXPECT_THAT(found.result.trials[1].reason, HasSubstr("not 4000"));
}

TEST_F(InferenceTuning, TriesAgainWhatFailedEverywhere) {
  const auto mark = folder_.path() / "failed-once";
  add_device(std::string(FAKE_RUNTIME) + " run again:" + mark.string());
  const auto first = tune(request({})).value();
  EXPECT_FALSE(first.result.best);
  EXPECT_FALSE(first.result.trials[0].reason.empty());
  const auto second = tune(request({})).value();
  EXPECT_FALSE(second.known);
  EXPECT_TRUE(second.result.best);
}

TEST_F(InferenceTuning, FailsOnWhatIsNotThere) {
  EXPECT_EQ(tune(request({}), "nowhere").error().code, ErrorCode::not_found);
  auto missing = request({});
  missing.model = folder_.path() / "missing.onnx";
  EXPECT_EQ(tune(missing).error().code, ErrorCode::not_found);
  EXPECT_FALSE(tune(request({}), "predictor:" + (folder_.path() / "p.json").string()));
}

TEST_F(InferenceTuning, StopsWhenAsked) {
  std::stop_source source;
  source.request_stop();
  const auto stopped =
      tune_inference_on(*workplace_, request({}), "fake", progress_, source.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_TRUE(workplace_->store->studies().list_inferences("").value().empty());
}

TEST_F(InferenceTuning, ConfirmsByARealRun) {
  const auto scenario =
      tune::Scenario{.kind = tune::ScenarioKind::server, .samples = 6, .period_ms = 20};
  const auto found = tune(request({batches({std::int64_t{4}})}, scenario)).value();
  const auto confirmed = confirm_inference(*workplace_,
                                           {.model = model_,
                                            .device = "fake",
                                            .scenario = scenario,
                                            .result = found.result,
                                            .seconds = 0.2},
                                           progress_, {});
  ASSERT_TRUE(confirmed) << confirmed.error().message;
  EXPECT_EQ(confirmed->batches, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(confirmed->real.samples, 60);
  EXPECT_GT(confirmed->real.mean_ms, 0);
  EXPECT_EQ(confirmed->expected, found.result.trials[*found.result.best].response);
}

TEST_F(InferenceTuning, ConfirmsNothingThatIsPredictedOrMissing) {
  EXPECT_EQ(
      confirm_inference(*workplace_, {.model = model_, .device = "predictor:p.json"}, progress_, {})
          .error()
          .code,
      ErrorCode::invalid_input);
  EXPECT_THAT(confirm_inference(*workplace_, {.model = model_, .device = "fake"}, progress_, {})
                  .error()
                  .message,
              HasSubstr("no recommended setting"));
}

TEST_F(InferenceTuning, ServesAPlanWithTheEngine) {
  const nlohmann::json plan = {{"scenario", "single"},
                               {"batch", 1},
                               {"seconds", 0.02},
                               {"seed", 1},
                               {"threads", 1},
                               {"kernels", "reference"},
                               {"models", {{{"batch", 1}, {"file", model_.string()}}}}};
  std::istringstream in(plan.dump() + "\ngo\n");
  std::ostringstream out;
  ASSERT_TRUE(serve_inference_plan(in, out));
  EXPECT_THAT(out.str(), HasSubstr(R"({"ready":true})"));
  EXPECT_THAT(out.str(), HasSubstr(R"("run_samples":1.0)"));
}

TEST_F(InferenceTuning, AnswersABrokenPlanWithAnError) {
  for (const auto* text : {"", "{}", "nonsense", R"({"scenario":"single","batch":0})"}) {
    std::istringstream in(text);
    std::ostringstream out;
    ASSERT_TRUE(serve_inference_plan(in, out));
    EXPECT_THAT(out.str(), HasSubstr("\"error\"")) << text;
  }
}

TEST_F(InferenceTuning, ShowsItsAnswerOnAPage) {
  const auto question = request({batches({std::int64_t{1}, std::int64_t{4}})}, kOffline);
  const auto found = tune(question).value();
  const auto page = inference_page("<net>", question.study, {found}, {});
  EXPECT_THAT(page, HasSubstr("&lt;net&gt;"));
  EXPECT_THAT(page, HasSubstr("batch 4, the best"));
  EXPECT_THAT(page, HasSubstr("Measured; 2 of 2 settings"));
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace fleetfit::app
