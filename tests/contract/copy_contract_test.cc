#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/store/copy.h"
#include "tests/contract/store_kinds.h"
#include "tests/core/temporary_folder.h"
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
  }

  static void expect_same(Store& one, Store& other) {
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
                          .inferences = 1};

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

INSTANTIATE_TEST_SUITE_P(Kinds, CopyContract, all_kinds(), name_of_kind);

}  // namespace
}  // namespace fleetfit::store
