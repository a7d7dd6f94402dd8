#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/store/copy.h"
#include "tests/contract/store_kinds.h"
#include "tests/core/temporary_folder.h"
#include "tests/store/example_fleet.h"
#include "tests/store/example_records.h"
#include "tests/store/example_studies.h"

/// Everything that one kind of store keeps can be brought to another, and back.
namespace fleetfit::store {
namespace {

class CopyContract : public testing::TestWithParam<Kind> {
 protected:
  // Of the kind that is tested, and a store in memory beside it.
  void SetUp() override {
    const auto url = GetParam().url(folder_.path());
    if (url.empty()) GTEST_SKIP() << "there is no server; tools/with-postgres starts one";
    store_ = open_store(url).value();
    memory_ = open_store("memory:").value();
  }

  static void fill(Store& store) {
    ASSERT_TRUE(store.save_device({.name = "pi4", .fingerprint = "f", .created = date(1)}));
    ASSERT_TRUE(store.save_model({.hash = "h", .name = "net", .source = "a.onnx", .bytes = 7}));
    ASSERT_TRUE(store.save_kernel_choices(std::vector<KernelChoiceRecord>{
        {.cpu = "zen", .key = "a", .choice = "x", .ms = 1.5, .measured = date(2)},
        {.cpu = "arm", .key = "b", .choice = "y", .measured = date(3)}}));
    ASSERT_TRUE(store.add_measurements(std::vector(1200, full_measurement())));
    auto& studies = store.studies();
    ASSERT_TRUE(studies.create_study(example_study("s")));
    ASSERT_TRUE(studies.create_study(example_study("empty")));
    auto trials = queued_trials(0, 1500);
    trials[3] = {.number = 3,
                 .state = TrialState::finished,
                 .structure = "beef",
                 .attempts = 1,
                 .worker = "w",
                 .score = 0.25,
                 .levels = {example_level(0)}};
    ASSERT_EQ(studies.add_trials("s", trials), true);
    ASSERT_TRUE(studies.save_inference(
        {.structure = "beef", .device_fingerprint = "f", .question = "q", .study = "s"}));
    fill(store.fleet());
  }

  // 1,500 jobs, of which 10 run and one has ended.
  static void fill(FleetStore& fleet) {
    ASSERT_TRUE(fleet.add_token(example_token()));
    ASSERT_TRUE(fleet.add_token(example_token('b')));
    ASSERT_EQ(fleet.revoke_token(2, date(8)), true);
    ASSERT_TRUE(fleet.save_agents(std::vector{example_agent("pi4"), example_agent("b")}));
    ASSERT_TRUE(fleet.add_jobs(std::vector(1500, wanted_job())));
    ASSERT_TRUE(fleet.claim_jobs("pi4", date(1), date(2), 11));
    const JobEnd end{.job = 5, .attempt = 1, .result = R"({"ms":1})"};
    ASSERT_TRUE(fleet.end_jobs("pi4", std::span(&end, 1), date(3)));
    std::vector<EventRecord> events;
    for (std::int64_t i = 1; i <= 1200; ++i) events.push_back(example_event(i));
    ASSERT_TRUE(fleet.add_events(events));
    ASSERT_TRUE(fleet.remove_events_before(date(2000)));  // the first 199
    ASSERT_TRUE(fleet.save_file(example_file()));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(fleet.add_audit(example_entry()));
  }

  static void expect_same(FleetStore& one, FleetStore& other) {
    EXPECT_EQ(one.list_tokens().value(), other.list_tokens().value());
    EXPECT_EQ(one.list_agents({}).value(), other.list_agents({}).value());
    EXPECT_TRUE(one.list_jobs({.limit = 2000}).value() == other.list_jobs({.limit = 2000}).value());
    EXPECT_EQ(one.count_jobs().value(), other.count_jobs().value());
    EXPECT_EQ(one.count_jobs_of("pi4").value(), other.count_jobs_of("pi4").value());
    EXPECT_TRUE(one.list_events({.limit = 2000}).value() ==
                other.list_events({.limit = 2000}).value());
    EXPECT_EQ(one.newest_event().value(), other.newest_event().value());
    EXPECT_EQ(one.last_sequence("pi4").value(), other.last_sequence("pi4").value());
    EXPECT_EQ(one.list_files(9).value(), other.list_files(9).value());
    EXPECT_EQ(one.list_audit(0, 9).value(), other.list_audit(0, 9).value());
  }

  static void expect_same(Store& one, Store& other) {
    expect_same(one.fleet(), other.fleet());
    EXPECT_EQ(one.list_devices().value(), other.list_devices().value());
    EXPECT_EQ(one.list_models().value(), other.list_models().value());
    for (const char* cpu : {"zen", "arm"})
      EXPECT_EQ(one.list_kernel_choices(cpu).value(), other.list_kernel_choices(cpu).value());
    EXPECT_TRUE(one.list_measurements({}).value() == other.list_measurements({}).value());
    EXPECT_EQ(one.studies().list_studies().value(), other.studies().list_studies().value());
    EXPECT_TRUE(one.studies().list_trials("s", 0, 2000, LevelDetail::all).value() ==
                other.studies().list_trials("s", 0, 2000, LevelDetail::all).value());
    EXPECT_EQ(one.studies().list_inferences("").value(),
              other.studies().list_inferences("").value());
  }

  core::TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Store> memory_;
};

constexpr CopyCounts kAll{.devices = 1,
                          .models = 1,
                          .measurements = 1200,
                          .kernel_choices = 2,
                          .studies = 2,
                          .trials = 1500,
                          .inferences = 1,
                          .tokens = 2,
                          .agents = 2,
                          .jobs = 1500,
                          .events = 1001,
                          .files = 1,
                          .audit = 3};

TEST_P(CopyContract, TakesEverythingIn) {
  fill(*memory_);
  EXPECT_EQ(copy_records(*memory_, *store_).value(), kAll);
  expect_same(*memory_, *store_);
}

TEST_P(CopyContract, GivesEverythingAway) {
  fill(*store_);
  EXPECT_EQ(copy_records(*store_, *memory_).value(), kAll);
  expect_same(*store_, *memory_);
}

TEST_P(CopyContract, IsRefusedWhereThereIsSomething) {
  ASSERT_TRUE(store_->save_device({.name = "a"}));
  const auto copied = copy_records(*memory_, *store_);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, ErrorCode::invalid_input);
}

TEST_P(CopyContract, IsRefusedWhereThereIsAFleet) {
  ASSERT_TRUE(store_->fleet().add_token(example_token()));
  EXPECT_FALSE(copy_records(*memory_, *store_));
}

INSTANTIATE_TEST_SUITE_P(Kinds, CopyContract, all_kinds(), name_of_kind);

}  // namespace
}  // namespace fleetfit::store
