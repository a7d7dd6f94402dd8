#include "fleetfit/yaml/fields.h"

#include <gtest/gtest.h>

namespace fleetfit::yaml {
namespace {

enum class Kind { slow, fast };

core::Names names_of(Kind) {
  static constexpr core::Name kAll[] = {{Kind::slow, "slow"}, {Kind::fast, "fast"}};
  return {.what = "kind", .all = kAll};
}

struct Limits {
  double seconds = 1;
  std::optional<std::int64_t> bytes = std::nullopt;
};

core::Fields fields_of(const Limits*) {
  static constexpr core::Field kAll[] = {
      core::field<&Limits::seconds>("seconds").above(0).may_be_missing(),
      core::field<&Limits::bytes>("bytes").from(1)};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

constexpr std::string_view kPrecisions[] = {"fp32", "int8"};

Result<int> parse_percent(std::string_view text) {
  if (text != "50%") return refuse("expected a share such as 50%");
  return 50;
}

struct Job {
  std::string name = {};
  Kind kind = Kind::slow;
  std::string precision = "fp32";
  std::vector<std::string> devices = {};
  std::vector<Limits> limits = {};
  int share = 0;
};

core::Fields fields_of(const Job*) {
  static constexpr core::Field kAll[] = {
      core::field<&Job::name>("name").key(),
      core::field<&Job::kind>("kind").may_be_missing(),
      core::field<&Job::precision>("precision").one_of(kPrecisions).may_be_missing(),
      core::field<&Job::devices>("devices").at_least(1).at_most(2).may_be_missing(),
      core::field<&Job::limits>("limits").may_be_missing(),
      core::parsed_field<&Job::share, parse_percent>("share").may_be_missing()};
  return {.all = kAll};
}

Result<Job> job_in(std::string_view text) {
  FLEETFIT_ASSIGN(const auto document, parse_yaml(text, "a.yaml"));
  return read<Job>(YamlView(document, "a.yaml"));
}

std::string problem(std::string_view text) {
  const auto job = job_in(text);
  return job ? "" : job.error().message;
}

TEST(YamlFields, AreReadByTheirDescription) {
  const auto job = job_in(
      "name: 12\nkind: fast\nprecision: int8\ndevices: [a, b]\n"
      "limits:\n- {}\n- {seconds: 2.5, bytes: 7}\nshare: 50%\nother: 1\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->name, "12");
  EXPECT_EQ(job->kind, Kind::fast);
  EXPECT_EQ(job->precision, "int8");
  EXPECT_EQ(job->devices, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(job->limits.size(), 2U);
  EXPECT_EQ(job->limits[0].seconds, 1);
  EXPECT_EQ(job->limits[1].bytes, 7);
  EXPECT_EQ(job->share, 50);
}

TEST(YamlFields, NameTheLineOfWhatIsWrong) {
  EXPECT_EQ(problem("kind: fast"), "a.yaml:1: name is missing");
  EXPECT_EQ(problem("name: ''"), "a.yaml:1: name: is empty");
  EXPECT_EQ(problem("name: a\nkind: quick"),
            "a.yaml:2: kind: expected one of slow, fast, found \"quick\"");
  EXPECT_EQ(problem("name: a\nprecision: fp16"),
            "a.yaml:2: precision: expected one of fp32, int8, found \"fp16\"");
  EXPECT_EQ(problem("name: a\ndevices: []"), "a.yaml:2: devices: is empty");
  EXPECT_EQ(problem("name: a\ndevices: [a, b, c]"), "a.yaml:2: devices: there are more than 2");
  EXPECT_EQ(problem("name: a\nlimits: [{seconds: 0}]"),
            "a.yaml:2: limits[0].seconds: 0 is not above 0");
  EXPECT_EQ(problem("name: a\nlimits: [{bytes: 0}]"),
            "a.yaml:2: limits[0].bytes: 0 is less than 1");
  EXPECT_EQ(problem("name: a\nlimits: [{byte: 0}]"),
            "a.yaml:2: limits[0].byte: there is no such key; there are seconds, bytes");
  EXPECT_EQ(problem("name: a\nshare: half"), "a.yaml:2: share: expected a share such as 50%");
}

}  // namespace
}  // namespace fleetfit::yaml
