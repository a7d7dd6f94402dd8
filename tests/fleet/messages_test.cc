#include "fleetfit/fleet/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fleetfit::fleet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kHash(64, 'a');
const std::string kOther(64, 'b');

core::JsonView view(const json& message) { return {message, "m"}; }

template <class Parse>
std::string error_of(Parse parse, const json& message) {
  const auto read = parse(view(message));
  return read ? "" : read.error().message;
}

Result<JobRequest> request(std::string_view kind, const json& body) {
  return parse_request(kind, view(body));
}

TEST(Messages, NamesOfDevicesHaveLettersDigitsAndThreeOtherSigns) {
  for (const auto* good : {"a", "pi4", "Rack-3.board_7", "0"})
    EXPECT_TRUE(check_name(good)) << good;
  for (const auto* bad : {"", "-a", ".a", "a/b", "a b", "ä", "a\n"}) EXPECT_FALSE(check_name(bad));
  EXPECT_TRUE(check_name(std::string(100, 'a')));
  EXPECT_FALSE(check_name(std::string(101, 'a')));
}

TEST(Messages, HashesHave64SmallHexDigits) {
  EXPECT_TRUE(check_hash(kHash));
  EXPECT_FALSE(check_hash(std::string(64, 'A')));
  EXPECT_FALSE(check_hash(std::string(63, 'a')));
  EXPECT_FALSE(check_hash("../" + std::string(61, 'a')));
}

TEST(Messages, ARegistrationIsReadAsItIsWritten) {
  const json written = to_json(Registration{
      .name = "pi4", .version = "0.1.0", .hardware = "an arm", .probe = R"({"cores":[0,1]})"});
  EXPECT_EQ(written, json::parse(R"({"name":"pi4","version":"0.1.0","hardware":"an arm",
                                     "probe":{"cores":[0,1]}})"));
  const auto read = parse_registration(view(written)).value();
  EXPECT_EQ(read.name, "pi4");
  EXPECT_EQ(read.hardware, "an arm");
  EXPECT_EQ(json::parse(read.probe).at("cores").size(), 2u);
}

TEST(Messages, ErrorsNameTheField) {
  EXPECT_THAT(error_of(parse_registration, {{"name", "a/b"}, {"version", "1"}}),
              HasSubstr("m: name: expected a name"));
  EXPECT_THAT(error_of(parse_registration, {{"name", "a"}}),
              HasSubstr("m: the field 'version' is missing"));
  EXPECT_THAT(error_of(parse_registration, {{"name", "a"}, {"version", "1"}, {"probe", 3}}),
              HasSubstr("probe: expected an object"));
  EXPECT_THAT(error_of(parse_heartbeat, {{"running", {{{"id", 1}, {"attempt", 0}}}}}),
              HasSubstr("running[0].attempt"));
  EXPECT_THAT(error_of(parse_events, {{"events", {{{"sequence", 1}, {"time", "now"}}}}}),
              HasSubstr("events[0].time: expected a time"));
  EXPECT_THAT(error_of(parse_outcomes, {{"results", json::object()}}), HasSubstr("results"));
  EXPECT_THAT(error_of(parse_outcomes, json::array()), HasSubstr("m: "));
}

TEST(Messages, ManyAndLargePartsAreRefused) {
  auto running = json::array();
  for (int i = 1; i <= 1001; ++i) running.push_back({{"id", i}, {"attempt", 1}});
  EXPECT_THAT(error_of(parse_heartbeat, {{"running", running}}), HasSubstr("more than 1000"));
  const json event = {{"sequence", 1},
                      {"time", "2026-11-16T08:00:00Z"},
                      {"kind", "log"},
                      {"body", {{"message", std::string(70'000, 'x')}}}};
  EXPECT_THAT(error_of(parse_events, {{"events", {event}}}), HasSubstr("more than 65536 bytes"));
}

TEST(Messages, TimesMayHaveFractionsOfSeconds) {
  const auto read = [](const char* time) {
    const json message = {{"events", {{{"sequence", 1}, {"time", time}, {"kind", "log"}}}}};
    return parse_events(view(message)).has_value();
  };
  EXPECT_TRUE(read("2026-11-16T08:00:00Z"));
  EXPECT_TRUE(read("2026-11-16T08:00:00.123Z"));
  for (const auto* bad : {"2026-11-16T08:00:00", "2026-11-16T08:00:00.Z", "2026-11-16 08:00:00Z",
                          "2026-11-16T08:00:00.12xZ", "Z", ""})
    EXPECT_FALSE(read(bad)) << bad;
}

TEST(Messages, OutcomesAreReadAsTheyAreWritten) {
  const std::vector<Outcome> outcomes = {
      {.attempt = {7, 2}, .finished = true, .result = R"({"latency":1.5})"},
      {.attempt = {8, 1}, .reason = "it hung"}};
  const json written = to_json(outcomes);
  EXPECT_EQ(written["results"][0]["state"], "finished");
  EXPECT_EQ(written["results"][1]["state"], "failed");
  const auto read = parse_outcomes(view(written)).value();
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].attempt.job, 7);
  EXPECT_EQ(read[0].attempt.attempt, 2);
  EXPECT_TRUE(read[0].finished);
  EXPECT_EQ(read[0].result, R"({"latency":1.5})");
  EXPECT_FALSE(read[1].finished);
  EXPECT_EQ(read[1].reason, "it hung");
}

TEST(Messages, AFailedJobHasAReason) {
  EXPECT_THAT(
      error_of(parse_outcomes, {{"results", {{{"job", 1}, {"attempt", 1}, {"state", "failed"}}}}}),
      HasSubstr("reason"));
}

TEST(Messages, EventsAreReadAsTheyAreWritten) {
  const json written = to_json(
      std::vector<Event>{{.sequence = 3,
                          .time = "2026-11-16T08:00:00.000Z",
                          .kind = "switch",
                          .job = 4,
                          .body = R"({"to":"o-s1"})"},
                         {.sequence = 4, .time = "2026-11-16T08:00:01.000Z", .kind = "log"}});
  EXPECT_FALSE(written["events"][1].contains("job"));
  const auto read = parse_events(view(written)).value();
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].job, 4);
  EXPECT_EQ(read[0].body, R"({"to":"o-s1"})");
  EXPECT_FALSE(read[1].job);
}

TEST(Messages, AReplyToAHeartbeatIsReadAsItIsWritten) {
  const json written = to_json(HeartbeatReply{.cancel = {3, 9}, .waiting = 2, .lease_s = 30});
  const auto read = parse_heartbeat_reply(view(written)).value();
  EXPECT_THAT(read.cancel, ElementsAre(3, 9));
  EXPECT_EQ(read.waiting, 2);
  EXPECT_EQ(read.lease_s, 30);
}

TEST(Jobs, EveryKindIsReadAsItIsWritten) {
  const std::vector<JobRequest> all = {
      ProbeJob{.seconds = 3},
      MeasureJob{.model = kHash,
                 .name = "m.onnx",
                 .settings = {.runtime = "xnnpack",
                              .threads = 2,
                              .cores = "0-1",
                              .precision = "int8",
                              .cpu_quota_percent = 50,
                              .memory_limit = "512M"},
                 .as = "slow",
                 .space = "ofa",
                 .design = "d",
                 .operators = true,
                 .max_time_s = 3,
                 .target_ci_percent = 5},
      ProfileJob{.bundle = kHash, .threads = 2},
      AdaptJob{.bundle = kHash, .data = "fashion-mnist", .budget_ms = 5, .strategy = "evolution"},
      RunJob{.bundle = kHash, .pool = kOther, .data = "d", .budget_ms = 5, .seconds = 9},
      DeployJob{.bundle = kHash, .pool = kOther}};
  for (const auto& job : all) {
    const json written = to_json(job);
    const auto read = parse_request(kind_of(job), view(written));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(kind_of(*read), kind_of(job));
    EXPECT_EQ(json(to_json(*read)), written);
  }
  EXPECT_EQ(kind_of(all[1]), "measure");
  const auto measure =
      std::get<MeasureJob>(parse_request("measure", view(json(to_json(all[1])))).value());
  EXPECT_EQ(measure.settings.cpu_quota_percent, 50);
  EXPECT_EQ(measure.settings.cores, "0-1");
  EXPECT_TRUE(measure.operators);
}

TEST(Jobs, NameTheFilesThatTheyNeed) {
  EXPECT_THAT(files_of(ProbeJob{}), IsEmpty());
  EXPECT_THAT(files_of(MeasureJob{.model = kHash}), ElementsAre(kHash));
  EXPECT_THAT(files_of(RunJob{.bundle = kHash}), ElementsAre(kHash));
  EXPECT_THAT(files_of(DeployJob{.bundle = kHash, .pool = kOther}), ElementsAre(kHash, kOther));
}

TEST(Jobs, BadRequestsAreRefusedWithTheField) {
  const auto refused = [](std::string_view kind, const json& body) {
    const auto read = request(kind, body);
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(refused("paint", json::object()), HasSubstr("there is no job \"paint\""));
  EXPECT_THAT(refused("probe", json::array()), HasSubstr("expected an object"));
  EXPECT_THAT(refused("probe", {{"second", 3}}), HasSubstr("second"));
  EXPECT_THAT(refused("measure", {{"model", "x"}, {"name", "a.onnx"}}), HasSubstr("model"));
  for (const auto* name : {"../a.onnx", "a/b.onnx", "", ".hidden", "a\nb"})
    EXPECT_THAT(refused("measure", {{"model", kHash}, {"name", name}}), HasSubstr("name")) << name;
  EXPECT_THAT(refused("measure",
                      {{"model", kHash}, {"name", "a.onnx"}, {"settings", {{"precision", "fp7"}}}}),
              HasSubstr("settings.precision: \"fp7\" is none of fp32, int8"));
  EXPECT_THAT(refused("adapt", {{"bundle", kHash}, {"data", "d"}, {"budget_ms", 0}}),
              HasSubstr("budget_ms"));
  EXPECT_THAT(refused("deploy", {{"bundle", kHash}, {"pool", "../../etc/passwd"}}),
              HasSubstr("pool"));
}

TEST(Jobs, AssignmentsAreReadAsTheyAreWritten) {
  const json written =
      to_json(std::vector<Assignment>{{.attempt = {12, 3},
                                       .request = MeasureJob{.model = kHash, .name = "m.onnx"},
                                       .limits = {.seconds = 30, .memory_bytes = 1 << 20},
                                       .lease_s = 20}});
  const auto read = parse_assignments(view(written)).value();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].attempt.job, 12);
  EXPECT_EQ(read[0].attempt.attempt, 3);
  EXPECT_EQ(read[0].limits.seconds, 30);
  EXPECT_EQ(read[0].limits.memory_bytes, 1 << 20);
  EXPECT_EQ(std::get<MeasureJob>(read[0].request).name, "m.onnx");
}

}  // namespace
}  // namespace fleetfit::fleet
