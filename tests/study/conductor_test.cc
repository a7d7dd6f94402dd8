#include "study/conductor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fleetfit/core/file.h"
#include "fleetfit/core/process_info.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/store/store.h"
#include "study/crew.h"

namespace fleetfit::study {
namespace {

using std::chrono::milliseconds;
using store::TrialRecord;
using store::TrialState;
using testing::HasSubstr;

/// Tells that the network in file N takes N milliseconds.
class FakeInference final : public InferenceTuner {
 public:
  Result<std::string> structure_of(const std::filesystem::path& model) override {
    return "structure " + model.string();
  }
  Result<std::vector<tune::Inference>> tune(const std::string& structure,
                                            const std::filesystem::path& model,
                                            const std::stop_token& stop) override {
    while (is_held && !stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    {
      const std::scoped_lock lock(mutex);
      tuned.push_back(structure);
    }
    if (model == "broken") return fail(ErrorCode::device_failed, "local: operator Odd");
    const double ms = std::stod(model.filename().string());
    return std::vector<tune::Inference>{
        {.device = "local", .latency_ms = ms, .response_ms = ms, .throughput = 1000 / ms}};
  }

  std::atomic<bool> is_held = false;
  std::mutex mutex;
  std::vector<std::string> tuned;
};

constexpr const char* kStudy = R"(
name: s
workload: {command: [sh, -c, 'w=${FLEETFIT_TRIAL#*width\":}; echo "{\"model\": \"${w%%[,\}]*}\"}"'], untrained: UNTRAINED}
parameters: {model: {width: {values: [10, 20]}}, training: {rate: {range: [0.1, 1]}}}
inference: {devices: [local], parameters: {batch_size: {values: [1]}}}
objective: {kind: ratio, of: time}
constraints: {latency_ms: {local: LIMIT}}
budget: {kind: epochs, min_epochs: 1, max_epochs: 2, eta: 2, max_trials: 8}
algorithm: {model: {sampler: grid, scheduler: asha}, mode: MODE}
)";

struct Variant {
  std::string limit = "1000";
  std::string untrained = "false";
  std::string mode = "onefold";
};

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

class ConductorOfAStudy : public testing::Test {
 protected:
  void create(const Variant& variant) {
    auto text = replaced(replaced(kStudy, "UNTRAINED", variant.untrained), "LIMIT", variant.limit);
    if (variant.mode == "hierarchical")
      text = replaced(text, "constraints: {latency_ms: {local: 1000}}\n", "");
    study_ = tune::parse_study(replaced(text, "MODE", variant.mode), "s.yaml").value();
    ASSERT_TRUE(studies().create_study({.name = "s", .definition = text}));
    begin();
  }

  /// A new one, as after a crash.
  void begin() {
    conductor_.reset();
    pricing_.emplace(inference_);
    conductor_.emplace(
        studies(), study_, &*pricing_, progress_,
        Conductor::Options{
            .ahead = 3, .command = study_.workload.command, .folder = folder_.path()});
  }

  store::StudyStore& studies() { return store_->studies(); }

  std::vector<TrialRecord> trials() {
    return studies().list_trials("s", 0, 100, store::LevelDetail::all).value();
  }

  /// Trains one level of one trial; false if there is none.
  bool work_once(const std::string& model = "") {
    const auto now = std::chrono::floor<milliseconds>(clock_.date());
    const auto trial = studies().claim_trial("s", "w", now, now + std::chrono::hours(1)).value();
    if (!trial) return false;
    const store::Claim claim{
        .study = "s", .trial = trial->number, .worker = "w", .attempt = trial->attempts};
    const auto file = model.empty() ? width_of(*trial) : model;
    if (trial->structure.empty()) {
      EXPECT_TRUE(studies().save_structure(claim, "structure " + file, file));
    }
    EXPECT_TRUE(studies().end_level(claim,
                                    {.level = trial->level,
                                     .epochs = 1 + trial->level,
                                     .accuracy = 0.5,
                                     .training_s = 1,
                                     .started = now,
                                     .ended = now},
                                    file));
    return true;
  }

  static std::string width_of(const TrialRecord& trial) {
    return trial.params.find("10") != std::string::npos ? "10" : "20";
  }

  /// Conducts and works until all is done.
  bool run(const std::string& model = "") {
    for (int i = 0; i < 5000; ++i) {
      const auto step = conductor_->step();
      if (!step) ADD_FAILURE() << step.error().message;
      if (!step || *step == Conductor::Step::done) return step.has_value();
      // Prices come sooner than training ends.
      conductor_->wait(work_once(model) ? milliseconds(20) : milliseconds(1), {});
    }
    return false;
  }

  core::ScratchFolder folder_ = core::ScratchFolder::create().value();
  std::unique_ptr<store::Store> store_ = store::open_store("memory:").value();
  core::SystemClock clock_;
  std::unique_ptr<core::Progress> silent_ = core::make_silent_progress();
  TuningProgress progress_{*silent_, clock_, 8};
  tune::Study study_;
  FakeInference inference_;
  std::optional<BackgroundInference> pricing_;
  std::optional<Conductor> conductor_;
};

TEST_F(ConductorOfAStudy, EndsAllTrialsAndPricesEveryNetworkOnce) {
  create({});
  ASSERT_TRUE(run());
  ASSERT_EQ(trials().size(), 8U);
  for (const auto& trial : trials()) {
    EXPECT_TRUE(trial.state == TrialState::finished || trial.state == TrialState::stopped);
    EXPECT_TRUE(trial.score.has_value());
  }
  EXPECT_THAT(inference_.tuned, testing::UnorderedElementsAre("structure 10", "structure 20"));
  // A second of training for each level and 10 or 20 ms of inference, over an accuracy of one half.
  for (const auto& trial : trials()) {
    const double inference_s = std::stod(width_of(trial)) / 1000;
    EXPECT_NEAR(*trial.score, 2 * (static_cast<double>(trial.levels.size()) + inference_s), 1e-9);
  }
}

TEST_F(ConductorOfAStudy, ScoresWaitForInference) {
  inference_.is_held = true;
  create({});
  ASSERT_TRUE(conductor_->step());
  while (work_once()) {
  }
  ASSERT_TRUE(conductor_->step());
  EXPECT_FALSE(trials()[0].score.has_value());
  inference_.is_held = false;
  ASSERT_TRUE(run());
  EXPECT_TRUE(trials()[0].score.has_value());
}

TEST_F(ConductorOfAStudy, NetworksThatAreKnownToBreakALimitAreNotTrained) {
  create({.limit = "15"});
  ASSERT_TRUE(run());
  int untrained = 0;
  for (const auto& trial : trials()) {
    if (width_of(trial) == "10") {
      EXPECT_NE(trial.reason, "latency on local: 20 ms, at most 15 ms");
      continue;
    }
    EXPECT_EQ(trial.state, TrialState::stopped);
    EXPECT_EQ(trial.reason, "latency on local: 20 ms, at most 15 ms");
    EXPECT_FALSE(trial.score.has_value());
    untrained += trial.attempts == 0 ? 1 : 0;
  }
  EXPECT_GT(untrained, 0);
}

TEST_F(ConductorOfAStudy, UntrainedNetworksArePricedBeforeTheyAreTrained) {
  create({.limit = "15", .untrained = "true"});
  ASSERT_TRUE(run());
  for (const auto& trial : trials()) EXPECT_EQ(trial.attempts == 0, width_of(trial) == "20");
}

TEST_F(ConductorOfAStudy, ANetworkThatCannotBeRunIsAFailedTrial) {
  create({});
  ASSERT_TRUE(run("broken"));
  for (const auto& trial : trials()) {
    EXPECT_EQ(trial.state, TrialState::failed);
    EXPECT_THAT(trial.reason, HasSubstr("operator Odd"));
  }
}

TEST_F(ConductorOfAStudy, HierarchicalTuningPricesTheBestAlone) {
  create({.mode = "hierarchical"});
  ASSERT_TRUE(run());
  EXPECT_EQ(inference_.tuned.size(), 1U);
}

TEST_F(ConductorOfAStudy, AnotherOneGoesOnWhereItWasKilled) {
  create({});
  for (int i = 0; i < 300; ++i) {
    begin();
    ASSERT_TRUE(conductor_->step());
    work_once();
    if (i > 20 && trials().size() == 8) break;
  }
  begin();
  ASSERT_TRUE(run());
  EXPECT_EQ(trials().size(), 8U);
  for (const auto& trial : trials()) {
    EXPECT_TRUE(has_ended(trial.state));
    EXPECT_LE(trial.levels.size(), 2U);
  }
}

TEST(ShareCores, EachHasItsOwnOrTheyTakeTurns) {
  using Cores = std::vector<std::vector<int>>;
  EXPECT_EQ(share_cores({0, 1, 2, 3}, 1), Cores{});
  EXPECT_EQ(share_cores({0, 1, 2, 5}, 2), (Cores{{0, 1}, {2, 5}}));
  EXPECT_EQ(share_cores({0, 1, 2}, 2), (Cores{{0}, {1, 2}}));
  EXPECT_EQ(share_cores({4, 7}, 3), (Cores{{4}, {7}, {4}}));
}

TEST(WorkerName, TellsWhetherTheProcessIsThere) {
  EXPECT_FALSE(has_died_here(name_of_this_worker("w1")));
  EXPECT_TRUE(
      has_died_here("w1@" + core::host_name() + ":4194305"));  // beyond the kernel's largest id
  EXPECT_FALSE(has_died_here("w1@elsewhere.example:4194305"));
  EXPECT_FALSE(has_died_here("somebody"));
}

}  // namespace
}  // namespace fleetfit::study
