#include "fleetfit/measure/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/fields.h"
#include "fleetfit/measure/energy.h"

namespace fleetfit::measure {
namespace {

using core::JsonView;
using testing::HasSubstr;

Measurement full_measurement() {
  Measurement m;
  m.device = "pi4";
  m.status = MeasurementStatus::unstable;
  m.reason = "too wide";
  m.latency = Latency{1, 2, 3, 4, {0.9, 1.1}, {1.8, 2.2}};
  m.runs = 12;
  m.operators = {{"conv", "Conv", "onednn", 0.75}};
  m.overhead_ms = 0.25;
  m.peak_memory_bytes = 1 << 20;
  m.energy = Energy{12.5, EnergySource::modelled, "table"};
  m.kernel_choices = "{}";
  keep_circumstances(m, {.warmup_runs = 5,
                         .outliers = 2,
                         .drift = {0.1, true},
                         .bimodal = true,
                         .notes = {"a note"},
                         .conditions = {.load_before = 0.5, .steal_share = 0.25, .kernel = "6.1"}});
  const Protocol protocol{.target = 0.01, .pause_ms = 5, .sessions = 3, .operators = true};
  m.protocol = core::format_json_line(core::to_json<nlohmann::json>(protocol));
  m.started = std::chrono::sys_days(std::chrono::year(2026) / 2 / 28) + std::chrono::hours(13) +
              std::chrono::milliseconds(7);
  return m;
}

TEST(MeasurementJson, HasTheKeysOfTheCommandLine) {
  const auto json = to_json(full_measurement());
  EXPECT_EQ(json["status"], "unstable");
  EXPECT_EQ(json["latency_ms"]["median"], 1);
  EXPECT_EQ(json["latency_ms"]["ci95"], nlohmann::json({0.9, 1.1}));
  EXPECT_EQ(json["energy_mj"]["value"], 12.5);
  EXPECT_EQ(json["energy_mj"]["source"], "modelled");
  EXPECT_EQ(json["ops"][0]["latency_ms"], 0.75);
  EXPECT_EQ(json["overhead_ms"], 0.25);
  EXPECT_EQ(json["started"], "2026-02-28T13:00:00.007Z");
}

TEST(MeasurementJson, IsReadBackAsItWas) {
  const auto json = to_json(full_measurement());
  const auto read = measurement_from_json(JsonView(json, "m.json"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), json);
  EXPECT_EQ(read->started, full_measurement().started);
  EXPECT_EQ(read->latency, full_measurement().latency);
  EXPECT_EQ(read->conditions, full_measurement().conditions);
}

TEST(MeasurementJson, OfAFailureHasNoNumbers) {
  Measurement failed{.device = "pi4", .status = MeasurementStatus::failed};
  failed.reason = "it died";
  const auto json = to_json(failed);
  EXPECT_TRUE(json["latency_ms"].is_null());
  EXPECT_TRUE(json["energy_mj"].is_null());
  const auto read = measurement_from_json(JsonView(json, "m.json"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->latency);
  EXPECT_EQ(read->reason, "it died");
}

struct Broken {
  const char* key;
  nlohmann::json value;
  const char* message;
};

TEST(MeasurementJson, NamesTheFieldThatIsWrong) {
  const Broken cases[] = {
      {"status", "fine", "m.json: status: \"fine\" is none of ok, unstable, failed"},
      {"runs", "many", "m.json: runs: expected a whole number"},
      {"started", "yesterday", "m.json: started: expected a time such as"},
      {"started", "2026-02-30T00:00:00.000Z", "m.json: started: expected a time such as"},
      {"latency_ms", nullptr, "m.json: latency_ms: is missing"},
      {"format", 2, "format: 2 is not known here"},
      {"ops", {{{"name", "x"}}}, "m.json: ops[0]: the field 'latency_ms' is missing"},
      {"protocol", {{"target", -1}}, "m.json: protocol.target: is -1, not from 0.0001 to 1"},
  };
  for (const auto& broken : cases) {
    auto json = to_json(full_measurement());
    json[broken.key] = broken.value;
    const auto read = measurement_from_json(JsonView(json, "m.json"));
    ASSERT_FALSE(read) << broken.key;
    EXPECT_THAT(read.error().message, HasSubstr(broken.message));
  }
}

TEST(ProtocolJson, HasDefaultsAndRefusesWhatItDoesNotKnow) {
  const auto empty = nlohmann::json::object();
  EXPECT_EQ(*core::read<Protocol>(JsonView(empty, "p")), Protocol{});
  const nlohmann::json misspelt = {{"targett", 0.1}};
  EXPECT_FALSE(core::read<Protocol>(JsonView(misspelt, "p")));
}

}  // namespace
}  // namespace fleetfit::measure
