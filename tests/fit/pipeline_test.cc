#include "fleetfit/fit/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/space/space.h"
#include "fleetfit/space/table.h"

namespace fleetfit::fit {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// What an operator of NAS-Bench-201 adds to a design's latency and accuracy, by its number.
constexpr std::array<double, 5> kMs = {0.1, 0.3, 1.0, 3.0, 0.8};
constexpr std::array<double, 5> kWorth = {0, 0.01, 0.05, 0.08, 0.02};

double latency_of(space::Design design, double speed) {
  double ms = 1;
  for (std::size_t i = 0; i < design.size(); ++i)
    ms += kMs.at(design[i]) * (1 + 0.1 * speed * static_cast<double>(i));
  return ms * speed;
}

double accuracy_of(space::Design design) {
  double accuracy = 0.3;
  for (const auto choice : design) accuracy += kWorth.at(choice);
  return accuracy;
}

class FakeProber final : public Prober {
 public:
  FakeProber(const FleetDevice& device, double speed) : device_(device), speed_(speed) {}

  Result<std::vector<Probe>> measure(space::DesignBatch designs) override {
    if (device_.runtime == "broken") return fail(ErrorCode::device_failed, "it burns");
    if (device_.runtime == "refused") return fail(ErrorCode::invalid_input, "no such thing");
    std::vector<Probe> probes;
    for (std::size_t i = 0; i < designs.size(); ++i)
      probes.push_back({.costs = {latency_of(designs[i], speed_)}});
    return probes;
  }

 private:
  FleetDevice device_;
  double speed_;
};

/// Designs of NAS-Bench-201 whose latency and accuracy are sums over their operators.
class FakeSource final : public FitSource {
 public:
  explicit FakeSource(int devices_at_once) : devices_at_once_(devices_at_once) {
    for (std::size_t i = 0; i < designs_.size(); ++i)
      accuracies_.push_back(accuracy_of(std::as_const(designs_)[i]));
  }

  bool has_test_data = false;

  const space::Space& space() const override { return *space_; }
  Subject subject() const override {
    return {.about = "made-up designs",
            .accuracy_scale = 100,
            .usual_samples = 8,
            .devices_at_once = devices_at_once_};
  }

  Result<OpenedDevice> open(std::size_t number, const FleetDevice& written) override {
    if (written.runtime == "missing") return fail(ErrorCode::unsupported, "it is not there");
    return OpenedDevice{.number = number, .written = written, .name = written.name};
  }

  Status know(std::span<const OpenedDevice> /*devices*/) override {
    space::DesignTable table{.name = "known", .space = space_, .designs = designs_};
    for (const double speed : {0.5, 1.0, 3.0}) {
      table.columns.push_back(std::to_string(speed));
      auto& values = table.values.emplace_back();
      for (std::size_t i = 0; i < designs_.size(); ++i)
        values.push_back(latency_of(std::as_const(designs_)[i], speed));
    }
    const std::vector<std::size_t> columns = {0, 1, 2};
    FLEETFIT_ASSIGN(auto known, transfer::KnownDevices::learn(table, columns));
    known_.emplace(std::move(known));
    return {};
  }
  Result<Prior> prior(const OpenedDevice& /*device*/) override {
    return Prior{.known = {&*known_}, .candidates = std::as_const(designs_)};
  }
  Result<std::unique_ptr<Prober>> prober(const OpenedDevice& device) override {
    return std::make_unique<FakeProber>(device.written,
                                        1.3 + 0.2 * static_cast<double>(device.number));
  }

  Result<FittedDevice> look_up(const OpenedDevice& device) override { return unfitted(device); }
  Status search(std::span<const FittingDevice> devices) override {
    for (const auto& device : devices)
      if (device.goes_on()) searched.push_back(device.opened.written.name);
    return {};
  }
  Result<Prospects> prospects(const FittingDevice& /*device*/) override {
    return *common_prospects();
  }
  std::optional<Prospects> common_prospects() const override {
    return Prospects{designs_, accuracies_};
  }
  Result<FittedDevice> choose(const OpenedDevice& /*device*/, FittedDevice found,
                              const Prospects& prospects) override {
    found.state = FitState::predicted;
    found.best = FitPoint{.design = space_->format(prospects.designs[0]),
                          .accuracy = prospects.accuracy[0],
                          .expected = {{1, 1, 1}}};
    return found;
  }

  Result<std::optional<std::vector<double>>> test(space::DesignBatch designs) override {
    if (!has_test_data) return std::nullopt;
    std::vector<double> tested;
    for (std::size_t i = 0; i < designs.size(); ++i) tested.push_back(accuracy_of(designs[i]) / 2);
    return tested;
  }
  std::string accuracy_about() const override { return "made up"; }
  Status write(const OpenedDevice& /*opened*/, FittedDevice& device) override {
    device.files.emplace_back(device.name + ".onnx");
    return {};
  }
  FitAccount account(std::span<const FittingDevice> devices) const override {
    FitAccount account;
    for (const auto& device : devices) account.measurements += device.found().tried.size();
    return account;
  }

  std::vector<std::string> searched;

 private:
  int devices_at_once_;
  const space::Space* space_ = space::find_space("nasbench201").value();
  space::Population designs_ = space::sample_designs(*space_, {.count = 400}).value();
  std::vector<double> accuracies_;
  std::optional<transfer::KnownDevices> known_;
};

class Pipeline : public testing::Test {
 protected:
  FleetDevice& add(const std::string& name, double limit_ms) {
    auto& device = fleet_.devices.emplace_back(FleetDevice{.name = name});
    device.line = 10 + fleet_.devices.size();
    device.budgets.latency = WrittenBudget{.value = limit_ms};
    return device;
  }

  Result<FitReport> run(FakeSource& source, const FitOptions& options = {}) {
    return fit_devices(fleet_, source, options, {clock_, *progress_});
  }

  Fleet fleet_{.name = "made-up", .file = "fleet.yaml"};
  core::SystemClock clock_;
  std::unique_ptr<core::Progress> progress_ = core::make_silent_progress();
  FakeSource source_{1};
};

TEST_F(Pipeline, GivesEachDeviceAMeasuredDesignThatKeepsItsBudget) {
  add("one", 9);
  add("two", 12);
  const auto report = run(source_).value();
  ASSERT_THAT(report.devices, SizeIs(2));
  EXPECT_TRUE(report.all_fitted());
  for (const auto& device : report.devices) {
    EXPECT_EQ(device.state, FitState::fitted);
    EXPECT_LE(device.best->measured[0], device.budgets[0].limit);
    EXPECT_LE(device.tried.size(), 12U);
    EXPECT_THAT(device.files, SizeIs(1));
  }
  EXPECT_EQ(report.account.measurements,
            report.devices[0].tried.size() + report.devices[1].tried.size());
}

TEST_F(Pipeline, ADeviceThatFailsDoesNotEndTheOthers) {
  add("one", 9).runtime = "broken";
  add("two", 12);
  const auto report = run(source_).value();
  EXPECT_EQ(report.devices[0].state, FitState::failed);
  EXPECT_EQ(report.devices[0].reason, "fleet.yaml:11: device one: it burns");
  EXPECT_EQ(report.devices[1].state, FitState::fitted);
  EXPECT_THAT(source_.searched, testing::ElementsAre("two"));
}

TEST_F(Pipeline, AMistakeInTheFleetEndsTheFitAndIsNamed) {
  add("one", 9);
  add("two", 12).runtime = "refused";
  const auto report = run(source_);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::invalid_input);
  EXPECT_EQ(report.error().message, "fleet.yaml:12: device two: no such thing");
}

TEST_F(Pipeline, LeavesOutOptionalDevicesThatAreNotThere) {
  auto& missing = add("one", 9);
  missing.runtime = "missing";
  missing.optional = true;
  add("two", 12);
  const auto report = run(source_).value();
  EXPECT_THAT(report.devices, SizeIs(1));
  EXPECT_THAT(report.left_out, testing::ElementsAre("one: it is not there"));
}

TEST_F(Pipeline, ADeviceThatIsNotThereFails) {
  add("one", 9).runtime = "missing";
  const auto report = run(source_).value();
  EXPECT_EQ(report.devices[0].state, FitState::failed);
  EXPECT_THAT(report.devices[0].reason, HasSubstr("it is not there"));
}

TEST_F(Pipeline, MeasuresNothingWhereAllIsKnownByLatencies) {
  add("phone", 9).latency = "table:phone.json";
  const auto report = run(source_).value();
  EXPECT_EQ(report.devices[0].state, FitState::predicted);
  EXPECT_THAT(report.devices[0].tried, IsEmpty());
}

TEST_F(Pipeline, ReportsTestAccuraciesAndKeepsThoseItChoseBy) {
  add("one", 9);
  source_.has_test_data = true;
  const auto report = run(source_).value();
  const auto& best = *report.devices[0].best;
  EXPECT_DOUBLE_EQ(best.test_accuracy.value(), best.accuracy / 2);
  EXPECT_DOUBLE_EQ(to_json(report)["devices"][0]["best"]["accuracy"].get<double>(),
                   best.accuracy / 2);
}

TEST_F(Pipeline, ThreadsDoNotChangeTheResult) {
  for (int i = 0; i < 5; ++i) add("device" + std::to_string(i), 8 + i);
  FakeSource several(3);
  EXPECT_EQ(to_json(run(source_).value())["devices"], to_json(run(several).value())["devices"]);
}

TEST_F(Pipeline, SharesModelsThatServeSeveralDevices) {
  add("one", 9);
  add("two", 12);
  const auto report = run(source_, {.share_within = 30}).value();
  std::size_t served = 0;
  for (const auto& model : report.shared) served += model.devices.size();
  EXPECT_EQ(served, 2U);
  EXPECT_EQ(report.share_within, 30);
}

TEST_F(Pipeline, StopsWhenAsked) {
  add("one", 9);
  std::stop_source stop;
  stop.request_stop();
  const auto report = fit_devices(fleet_, source_, {}, {clock_, *progress_, stop.get_token()});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::cancelled);
}

}  // namespace
}  // namespace fleetfit::fit
