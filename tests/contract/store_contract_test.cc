#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <thread>

#include "fleetfit/store/store.h"
#include "tests/contract/store_kinds.h"
#include "tests/core/temporary_folder.h"
#include "tests/store/example_records.h"

/// What every store must do, whatever it is made of.
namespace fleetfit::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// In place of a URL: the store of jobs on devices, which keeps neither studies nor a fleet.
constexpr const char* kOnDevices = "on devices";

class StoreContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const auto url = GetParam().url(folder_.path());
    if (url.empty()) GTEST_SKIP() << "there is no server; tools/with-postgres starts one";
    auto opened = url == kOnDevices ? open_device_store() : open_store(url);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }

  Store& store() { return *store_; }

  std::int64_t add(const MeasurementRecord& measurement) {
    const auto id = store().add_measurement(measurement);
    EXPECT_TRUE(id) << id.error().message;
    return id.value_or(0);
  }

  MeasurementRecord found(std::int64_t id) {
    const auto measurement = store().find_measurement(id);
    EXPECT_TRUE(measurement && *measurement) << "measurement " << id;
    return measurement.value().value_or(MeasurementRecord{});
  }

  std::vector<std::int64_t> ids(const MeasurementFilter& filter) {
    std::vector<std::int64_t> ids;
    const auto list = store().list_measurements(filter).value();
    for (const auto& measurement : list) ids.push_back(measurement.id);
    return ids;
  }

  // The message, if it is refused as bad input and nothing was written.
  std::string refusal_of(const MeasurementRecord& measurement) {
    const auto added = store().add_measurement(measurement);
    if (added) return "accepted";
    EXPECT_EQ(added.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(store().list_measurements({}).value(), IsEmpty());
    return added.error().message;
  }

 private:
  core::TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

std::string refusal(const Status& status) {
  if (status) return "accepted";
  EXPECT_EQ(status.error().code, ErrorCode::invalid_input);
  return status.error().message;
}

// Devices

TEST_P(StoreContract, GivesBackADeviceAsItWasSaved) {
  const DeviceRecord device{.name = "pi4-xnnpack",
                            .fingerprint = "77aa",
                            .settings = R"({"threads": 4, "cores": [0, 1]})",
                            .created = date(17)};
  ASSERT_TRUE(store().save_device(device));
  EXPECT_EQ(store().find_device("pi4-xnnpack").value(), device);
}

TEST_P(StoreContract, FindsNothingUnderANameThatWasNeverSaved) {
  EXPECT_EQ(store().find_device("pi4").value(), std::nullopt);
  EXPECT_EQ(store().find_model("abc").value(), std::nullopt);
  EXPECT_EQ(store().find_measurement(1).value(), std::nullopt);
  EXPECT_THAT(store().list_devices().value(), IsEmpty());
  EXPECT_THAT(store().list_models().value(), IsEmpty());
  EXPECT_THAT(store().list_measurements({}).value(), IsEmpty());
  EXPECT_THAT(store().list_kernel_choices("zen4").value(), IsEmpty());
}

TEST_P(StoreContract, ReplacesADeviceOfTheSameName) {
  const DeviceRecord first{.name = "pi4", .fingerprint = "1", .created = date(1)};
  const DeviceRecord second{
      .name = "pi4", .fingerprint = "2", .settings = R"({"threads":2})", .created = date(2)};
  ASSERT_TRUE(store().save_device(first));
  ASSERT_TRUE(store().save_device(second));
  EXPECT_THAT(store().list_devices().value(), ElementsAre(second));
}

TEST_P(StoreContract, ListsDevicesByTheBytesOfTheirNames) {
  for (const char* name : {"b", "ä", "a", "B", "a1"})
    ASSERT_TRUE(store().save_device({.name = name}));
  std::vector<std::string> names;
  const auto list = store().list_devices().value();
  for (const auto& device : list) names.push_back(device.name);
  EXPECT_THAT(names, ElementsAre("B", "a", "a1", "b", "ä"));
}

TEST_P(StoreContract, RemovesADeviceAndKeepsItsMeasurements) {
  ASSERT_TRUE(store().save_device({.name = "pi4"}));
  ASSERT_TRUE(store().save_device({.name = "pi5"}));
  const auto id = add(full_measurement());
  EXPECT_TRUE(store().remove_device("pi4").value());
  EXPECT_FALSE(store().remove_device("pi4").value());
  EXPECT_EQ(store().find_device("pi4").value(), std::nullopt);
  EXPECT_NE(store().find_device("pi5").value(), std::nullopt);
  EXPECT_EQ(found(id).device, "pi4");
}

TEST_P(StoreContract, RefusesDevicesThatBreakTheirFields) {
  const auto refused = [&](const DeviceRecord& d) { return refusal(store().save_device(d)); };
  EXPECT_EQ(refused({.name = ""}), "device: name is empty");
  EXPECT_EQ(refused({.name = std::string("a\0b", 3)}), "device: name contains a NUL character");
  EXPECT_EQ(refused({.name = "a", .fingerprint = "\xff"}), "device: fingerprint is not UTF-8");
  EXPECT_EQ(refused({.name = "a", .settings = "[1]"}), "device: settings is not a JSON object");
  EXPECT_THAT(refused({.name = "a", .settings = "{\"x\":"}), HasSubstr("device: settings:1:"));
  EXPECT_THAT(refused({.name = "a", .settings = ""}), HasSubstr("device: settings"));
  EXPECT_THAT(store().list_devices().value(), IsEmpty());
}

// Models

TEST_P(StoreContract, GivesBackAModelAsItWasSaved) {
  const ModelRecord model{.hash = "sha256:00ff",
                          .name = "resnet18",
                          .source = "zoo:resnet18",
                          .bytes = 9'000'000'000'000};
  ASSERT_TRUE(store().save_model(model));
  EXPECT_EQ(store().find_model("sha256:00ff").value(), model);
}

TEST_P(StoreContract, ReplacesAModelOfTheSameHash) {
  ASSERT_TRUE(store().save_model({.hash = "1", .name = "a", .source = "a.onnx", .bytes = 1}));
  const ModelRecord moved{.hash = "1", .name = "b", .source = "b.onnx", .bytes = 1};
  ASSERT_TRUE(store().save_model(moved));
  EXPECT_THAT(store().list_models().value(), ElementsAre(moved));
}

TEST_P(StoreContract, ListsModelsByNameAndThenHash) {
  ASSERT_TRUE(store().save_model({.hash = "1", .name = "z"}));
  ASSERT_TRUE(store().save_model({.hash = "3", .name = "a"}));
  ASSERT_TRUE(store().save_model({.hash = "2", .name = "a"}));
  std::vector<std::string> hashes;
  const auto list = store().list_models().value();
  for (const auto& model : list) hashes.push_back(model.hash);
  EXPECT_THAT(hashes, ElementsAre("2", "3", "1"));
}

TEST_P(StoreContract, RemovesAModelAndKeepsItsMeasurements) {
  ASSERT_TRUE(store().save_model({.hash = "abc123"}));
  const auto id = add(full_measurement());
  EXPECT_TRUE(store().remove_model("abc123").value());
  EXPECT_FALSE(store().remove_model("abc123").value());
  EXPECT_EQ(store().find_model("abc123").value(), std::nullopt);
  EXPECT_EQ(found(id).model_hash, "abc123");
}

TEST_P(StoreContract, RefusesModelsThatBreakTheirFields) {
  const auto refused = [&](const ModelRecord& m) { return refusal(store().save_model(m)); };
  EXPECT_EQ(refused({.hash = ""}), "model: hash is empty");
  EXPECT_EQ(refused({.hash = "1", .name = "\xc3"}), "model: name is not UTF-8");
  EXPECT_EQ(refused({.hash = "1", .bytes = -1}), "model: bytes is -1, below zero");
}

// Measurements

TEST_P(StoreContract, GivesBackEveryFieldOfAMeasurement) {
  auto measurement = full_measurement();
  measurement.id = add(measurement);
  EXPECT_GT(measurement.id, 0);
  EXPECT_EQ(found(measurement.id), measurement);
}

TEST_P(StoreContract, KeepsAbsentFieldsAbsent) {
  MeasurementRecord failed{
      .device = "pi4", .status = MeasurementStatus::failed, .reason = "the runtime died"};
  failed.id = add(failed);
  const auto back = found(failed.id);
  EXPECT_EQ(back, failed);
  EXPECT_FALSE(back.latency || back.energy || back.overhead_ms || back.peak_memory_bytes);
  EXPECT_FALSE(back.space || back.design);
}

TEST_P(StoreContract, TellsZeroAndTheEmptyTextFromAbsence) {
  auto measurement = plain_measurement();
  measurement.space = "";
  measurement.design = "";
  measurement.overhead_ms = 0.0;
  measurement.peak_memory_bytes = 0;
  measurement.energy = Energy{.mj = 0, .source = EnergySource::measured};
  measurement.latency = Latency{};
  measurement.id = add(measurement);
  EXPECT_EQ(found(measurement.id), measurement);
}

TEST_P(StoreContract, KeepsDoublesToTheLastBit) {
  auto measurement = plain_measurement();
  measurement.latency = Latency{.median_ms = 0.1 + 0.2,
                                .mean_ms = std::numeric_limits<double>::denorm_min(),
                                .p90_ms = std::numeric_limits<double>::max(),
                                .p99_ms = 9'007'199'254'740'993.0,
                                .ci95_ms = {-1.0 / 3, 1e15 + 0.125}};
  measurement.id = add(measurement);
  EXPECT_EQ(found(measurement.id), measurement);
}

TEST_P(StoreContract, KeepsTimesBeforeAndAfter1970) {
  for (const std::int64_t ms : {-1'000'001, 0, 1}) {
    auto measurement = plain_measurement();
    measurement.started = Time(std::chrono::milliseconds(ms));
    EXPECT_EQ(found(add(measurement)).started, measurement.started);
  }
}

TEST_P(StoreContract, KeepsAnyText) {
  const std::string texts[] = {"",
                               "'; DROP TABLE measurements; --",
                               "\"quoted\" 'twice'",
                               "100 % ? :x",
                               "line\nand\ttab\\",
                               "größer 測量 🙂",
                               std::string(100'000, 'x')};
  for (const auto& text : texts) {
    auto measurement = plain_measurement();
    measurement.device = "d" + text;
    measurement.model_name = text;
    measurement.design = text;
    measurement.reason = text;
    measurement.operators = {{.name = text, .type = text, .kernel = text, .ms = 1}};
    measurement.id = add(measurement);
    EXPECT_EQ(found(measurement.id), measurement);
    EXPECT_THAT(ids({.device = "d" + text}), ElementsAre(measurement.id));
    ASSERT_TRUE(store().save_device({.name = "d" + text}));
    EXPECT_EQ(store().find_device("d" + text).value()->name, "d" + text);
  }
}

TEST_P(StoreContract, KeepsAThousandOperatorsInOrder) {
  auto measurement = plain_measurement();
  measurement.operators = example_operators(1000);
  EXPECT_EQ(found(add(measurement)).operators, measurement.operators);
}

TEST_P(StoreContract, KeepsOperatorsApartThatAreAlike) {
  auto measurement = plain_measurement();
  measurement.operators = {{.name = "a", .ms = 1}, {.name = "a", .ms = 1}};
  EXPECT_EQ(found(add(measurement)).operators, measurement.operators);
}

TEST_P(StoreContract, GivesABatchIdsInItsOrder) {
  std::vector<MeasurementRecord> batch(3, plain_measurement());
  batch[0].model_name = "a";
  batch[1].model_name = "b";
  batch[2].model_name = "c";
  batch[1].operators = example_operators(2);
  const auto added = store().add_measurements(batch).value();
  ASSERT_EQ(added.size(), 3u);
  EXPECT_EQ(found(added[0]).model_name, "a");
  EXPECT_EQ(found(added[1]).model_name, "b");
  EXPECT_EQ(found(added[2]).model_name, "c");
  EXPECT_THAT(found(added[0]).operators, IsEmpty());
  EXPECT_EQ(found(added[1]).operators.size(), 2u);
}

TEST_P(StoreContract, AddsAnEmptyBatch) {
  EXPECT_THAT(store().add_measurements({}).value(), IsEmpty());
  EXPECT_TRUE(store().save_kernel_choices({}));
}

TEST_P(StoreContract, AddsNothingOfABatchWithOneBadRecord) {
  std::vector<MeasurementRecord> batch(3, plain_measurement());
  batch[2].overhead_ms = kNan;
  EXPECT_FALSE(store().add_measurements(batch));
  EXPECT_THAT(store().list_measurements({}).value(), IsEmpty());
}

TEST_P(StoreContract, IgnoresTheIdOfARecordThatIsAdded) {
  auto measurement = plain_measurement();
  const auto first = add(measurement);
  measurement.id = first;
  EXPECT_NE(add(measurement), first);
}

TEST_P(StoreContract, NeverUsesAnIdTwice) {
  const auto first = add(plain_measurement());
  ASSERT_TRUE(store().remove_measurement(first).value());
  EXPECT_NE(add(plain_measurement()), first);
}

TEST_P(StoreContract, RemovesAMeasurementWithItsOperators) {
  const auto gone = add(full_measurement());
  const auto kept = add(full_measurement());
  EXPECT_TRUE(store().remove_measurement(gone).value());
  EXPECT_FALSE(store().remove_measurement(gone).value());
  EXPECT_EQ(store().find_measurement(gone).value(), std::nullopt);
  EXPECT_EQ(found(kept).operators, full_measurement().operators);
}

TEST_P(StoreContract, ListsTheNewestFirst) {
  std::vector<MeasurementRecord> batch(4, plain_measurement());
  batch[0].started = date(20);
  batch[1].started = date(30);
  batch[2].started = date(10);
  batch[3].started = date(20);
  const auto added = store().add_measurements(batch).value();
  EXPECT_THAT(ids({}), ElementsAre(added[1], added[3], added[0], added[2]));
  EXPECT_THAT(ids({.limit = 2}), ElementsAre(added[1], added[3]));
  EXPECT_THAT(ids({.limit = 0}), IsEmpty());
  EXPECT_EQ(ids({.limit = std::numeric_limits<std::size_t>::max()}).size(), 4u);
}

TEST_P(StoreContract, GoesThroughAllMeasurementsById) {
  std::vector<MeasurementRecord> batch(5, full_measurement());
  for (int i = 0; i < 5; ++i) batch[static_cast<std::size_t>(i)].started = date(10 - i);
  const auto added = store().add_measurements(batch).value();
  const auto first = store().list_measurements_after(0, 3).value();
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[0].id, added[0]);
  EXPECT_EQ(first[2].id, added[2]);
  EXPECT_EQ(first[1].operators, full_measurement().operators);
  const auto rest = store().list_measurements_after(added[2], 100).value();
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[1].id, added[4]);
  EXPECT_THAT(store().list_measurements_after(added[4], 100).value(), IsEmpty());
}

TEST_P(StoreContract, ListsWhatFitsAllThatIsAskedFor) {
  const auto full = add(full_measurement());
  auto other = full_measurement();
  other.started = date(-1);
  other.device = "pi5";
  const auto on_pi5 = add(other);
  other.device_fingerprint = "beef";
  other.started = date(-2);
  const auto changed_pi5 = add(other);
  auto plain = plain_measurement();
  plain.started = date(-3);
  const auto ok = add(plain);

  EXPECT_THAT(ids({.device = "pi4"}), ElementsAre(full, ok));
  EXPECT_THAT(ids({.device_fingerprint = "beef"}), ElementsAre(changed_pi5));
  EXPECT_THAT(ids({.model_hash = "abc123"}), ElementsAre(full, on_pi5, changed_pi5));
  EXPECT_THAT(ids({.space = "nasbench201"}), ElementsAre(full, on_pi5, changed_pi5));
  EXPECT_THAT(ids({.status = MeasurementStatus::ok}), ElementsAre(ok));
  EXPECT_THAT(ids({.device = "pi5", .model_hash = "abc123", .limit = 1}), ElementsAre(on_pi5));
  EXPECT_THAT(ids({.device = "pi5", .status = MeasurementStatus::ok}), IsEmpty());
  EXPECT_THAT(ids({.space = ""}), IsEmpty());
  EXPECT_THAT(ids({.device = "PI4"}), IsEmpty());
}

TEST_P(StoreContract, ListsWithAndWithoutOperators) {
  auto measurement = full_measurement();
  measurement.id = add(measurement);
  EXPECT_THAT(store().list_measurements({}).value(), ElementsAre(measurement));
  measurement.operators.clear();
  EXPECT_THAT(store().list_measurements({.operators = false}).value(), ElementsAre(measurement));
}

TEST_P(StoreContract, RefusesNumbersThatAreNotFinite) {
  using Place = double& (*)(Latency&);
  constexpr Place kPlaces[] = {[](Latency& l) -> double& { return l.median_ms; },
                               [](Latency& l) -> double& { return l.mean_ms; },
                               [](Latency& l) -> double& { return l.p90_ms; },
                               [](Latency& l) -> double& { return l.p99_ms; },
                               [](Latency& l) -> double& { return l.ci95_ms.low; },
                               [](Latency& l) -> double& { return l.ci95_ms.high; }};
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    for (const auto place : kPlaces) {
      auto measurement = full_measurement();
      place(*measurement.latency) = bad;
      EXPECT_THAT(refusal_of(measurement), HasSubstr("which is no finite number"));
    }
    auto overhead = full_measurement();
    overhead.overhead_ms = bad;
    EXPECT_THAT(refusal_of(overhead), HasSubstr("measurement: overhead_ms is"));
    auto energy = full_measurement();
    energy.energy->mj = bad;
    EXPECT_THAT(refusal_of(energy), HasSubstr("measurement: energy_mj is"));
    auto op = full_measurement();
    op.operators[2].ms = bad;
    EXPECT_THAT(refusal_of(op), HasSubstr("measurement: operators[2]: ms is"));
    const KernelChoiceRecord choice{.cpu = "zen4", .key = "conv", .ms = bad};
    EXPECT_THAT(refusal(store().save_kernel_choices({&choice, 1})), HasSubstr("ms is"));
  }
  EXPECT_THAT(store().list_kernel_choices("zen4").value(), IsEmpty());
}

TEST_P(StoreContract, RefusesMeasurementsThatBreakTheirFields) {
  using Change = std::function<void(MeasurementRecord&)>;
  const auto refused = [&](const Change& change) {
    auto measurement = full_measurement();
    change(measurement);
    return refusal_of(measurement);
  };
  EXPECT_EQ(refused([](auto& m) { m.device = ""; }), "measurement: device is empty");
  EXPECT_EQ(refused([](auto& m) { m.reason = ""; }),
            "measurement: reason is empty though the status is not ok");
  EXPECT_EQ(refused([](auto& m) {
              m.status = MeasurementStatus::ok;
              m.latency.reset();
            }),
            "measurement: latency is missing though the status is ok");
  EXPECT_EQ(refused([](auto& m) { m.runs = -3; }), "measurement: runs is -3, below zero");
  EXPECT_EQ(refused([](auto& m) { m.peak_memory_bytes = -1; }),
            "measurement: peak_memory_bytes is -1, below zero");
  EXPECT_EQ(refused([](auto& m) { m.protocol = "3"; }),
            "measurement: protocol is not a JSON object");
  EXPECT_THAT(refused([](auto& m) { m.conditions = "{"; }),
              HasSubstr("measurement: conditions:1:"));
  EXPECT_EQ(refused([](auto& m) { m.design = std::string("\0", 1); }),
            "measurement: design contains a NUL character");
  EXPECT_EQ(refused([](auto& m) { m.operators[1].kernel = "\x80"; }),
            "measurement: operators[1]: kernel is not UTF-8");
}

TEST_P(StoreContract, TakesExactlyTheTextsThatAreUtf8) {
  const auto accepts = [&](const std::string& name) {
    return store().save_device({.name = name}).has_value();
  };
  // The first and last characters of each length, from the table of RFC 3629.
  for (const char* good : {"\x01", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(accepts(good)) << testing::PrintToString(good);
  for (const char* bad : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2x", "\xe0\x9f\xbf",
                          "\xed\xa0\x80", "\xe2\x82", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xff", "fine\xe2\x82"})
    EXPECT_FALSE(accepts(bad)) << testing::PrintToString(bad);
}

// Kernel choices

TEST_P(StoreContract, ListsTheKernelChoicesOfACpuByKey) {
  const KernelChoiceRecord conv{.cpu = "zen4",
                                .key = "conv 1x64x56x56 nhwc 2 threads f32",
                                .choice = "onednn jit:avx512",
                                .ms = 0.25,
                                .measured = date(5)};
  const KernelChoiceRecord add{.cpu = "zen4", .key = "add", .choice = "own", .measured = date(6)};
  const KernelChoiceRecord elsewhere{.cpu = "a76", .key = "add", .choice = "xnnpack"};
  const KernelChoiceRecord batch[] = {conv, elsewhere, add};
  ASSERT_TRUE(store().save_kernel_choices(batch));
  EXPECT_THAT(store().list_kernel_choices("zen4").value(), ElementsAre(add, conv));
  EXPECT_THAT(store().list_kernel_choices("a76").value(), ElementsAre(elsewhere));
}

TEST_P(StoreContract, ReplacesAKernelChoiceOfTheSameWorkAndCpu) {
  const KernelChoiceRecord batch[] = {{.cpu = "zen4", .key = "add", .choice = "slow", .ms = 2.0},
                                      {.cpu = "zen4", .key = "add", .choice = "fast"}};
  ASSERT_TRUE(store().save_kernel_choices(batch));
  EXPECT_THAT(store().list_kernel_choices("zen4").value(), ElementsAre(batch[1]));
}

TEST_P(StoreContract, SavesNothingOfKernelChoicesWithOneBadRecord) {
  const KernelChoiceRecord batch[] = {{.cpu = "zen4", .key = "add"}, {.cpu = "zen4", .key = ""}};
  EXPECT_EQ(refusal(store().save_kernel_choices(batch)), "kernel choice: key is empty");
  EXPECT_THAT(store().list_kernel_choices("zen4").value(), IsEmpty());
}

TEST_P(StoreContract, ForgetsTheKernelChoicesOfOneCpu) {
  const KernelChoiceRecord batch[] = {
      {.cpu = "zen4", .key = "a"}, {.cpu = "zen4", .key = "b"}, {.cpu = "a76", .key = "a"}};
  ASSERT_TRUE(store().save_kernel_choices(batch));
  EXPECT_EQ(store().remove_kernel_choices("zen4").value(), 2);
  EXPECT_EQ(store().remove_kernel_choices("zen4").value(), 0);
  EXPECT_THAT(store().list_kernel_choices("zen4").value(), IsEmpty());
  EXPECT_EQ(store().list_kernel_choices("a76").value().size(), 1u);
}

// Threads

TEST_P(StoreContract, LosesNothingWhenManyThreadsUseIt) {
  constexpr int kThreads = 4;
  constexpr int kEach = 10;
  std::vector<std::vector<std::int64_t>> added(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          auto measurement = full_measurement();
          measurement.device = "device" + std::to_string(t);
          added[t].push_back(store().add_measurement(measurement).value_or(-1));
          EXPECT_TRUE(store().save_device({.name = measurement.device}));
          EXPECT_TRUE(store().list_measurements({.device = measurement.device, .limit = 3}));
        }
      });
  }
  std::set<std::int64_t> all;
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(ids({.device = "device" + std::to_string(t)}),
              std::vector(added[t].rbegin(), added[t].rend()));
    all.insert(added[t].begin(), added[t].end());
  }
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kThreads * kEach));
  EXPECT_EQ(store().list_devices().value().size(), static_cast<std::size_t>(kThreads));
}

INSTANTIATE_TEST_SUITE_P(Kinds, StoreContract, all_kinds(), name_of_kind);
INSTANTIATE_TEST_SUITE_P(OnDevices, StoreContract,
                         testing::Values(Kind{"device",
                                              [](const auto&) { return std::string(kOnDevices); }}),
                         name_of_kind);

}  // namespace
}  // namespace fleetfit::store
