#include "fleetfit/learned/device_features.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace fleetfit::learned {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

space::DesignTable table_of(std::string text) {
  const auto csv = *core::parse_csv(std::move(text), "t.csv");
  return *space::design_table_of(csv, "t.csv", **space::find_space("nasbench201"));
}

/// Logarithms on two devices, each with mean 0: (3,3) is the largest, (-1,-1) says the same, and
/// (-2,-1) and (0,-1) differ from it by 1/sqrt(2) each.
space::DesignTable three_directions() {
  const auto row = [](const char* ops, double a, double b) {
    return fmt::format("{},{},{}\n", ops, std::exp(a), std::exp(b));
  };
  return table_of("ops,a,b\n" + row("000000", -1, -1) + row("111111", 3, 3) +
                  row("222222", -2, -1) + row("333333", 0, -1) + "444444,,1e7\n");
}

TEST(ChosenReferences, AreThoseThatSaySomethingNew) {
  const auto rows = *choose_references(three_directions(), {.count = 2});
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0], 1);
  EXPECT_THAT(rows[1], testing::AnyOf(2, 3));
}

TEST(ChosenReferences, AreNotMoreThanTheTableCanTell) {
  EXPECT_EQ(choose_references(three_directions(), {.count = 3}).error().message,
            "t.csv: only 2 designs can be chosen that tell its 2 devices apart, not 3");
}

TEST(FoundReferences, AreRowsOfDesigns) {
  EXPECT_THAT(*find_references(three_directions(), {"333333", "000000"}), ElementsAre(3, 0));
  EXPECT_EQ(find_references(three_directions(), {"012340"}).error().message,
            "t.csv: there is no design '012340'");
  EXPECT_THAT(find_references(three_directions(), {"x"}).error().message,
              HasSubstr("the reference design 'x'"));
}

TEST(ProbeFeatures, AreWhatTheProbePrinted) {
  const auto json = nlohmann::json::parse(R"({"features": {"cores": 4, "l1_bytes": 32768}})");
  const auto features = *probe_features("pi", core::JsonView(json, "p.json"));
  EXPECT_EQ(format_device_features(features), "device,probe:cores,probe:l1_bytes\npi,4,32768\n");
}

TEST(ProbeFeatures, RefuseWhatNoProbePrinted) {
  const auto refusal = [](const char* text) {
    const auto json = nlohmann::json::parse(text);
    return probe_features("pi", core::JsonView(json, "p.json")).error().message;
  };
  EXPECT_THAT(refusal("{}"), HasSubstr("the field 'features' is missing"));
  EXPECT_THAT(refusal(R"({"features": {}})"), HasSubstr("there are no features"));
  EXPECT_THAT(refusal(R"({"features": {"cores": "many"}})"), HasSubstr("features.cores"));
  EXPECT_THAT(refusal(R"({"features": {"cores": -4}})"), HasSubstr("features.cores: it cannot"));
}

Result<SheetFeatures> sheet_in(std::string text, std::string_view key = "device") {
  return sheet_features(*core::parse_csv(std::move(text), "s.csv"), "s.csv", key);
}

TEST(SheetFeatures, AreTheColumnsWithNumbers) {
  const auto sheet =
      *sheet_in("soc,name,cores,empty,mhz\nA53,pi 3,4,,1200\nA72,pi 4,4,,\n", "name");
  EXPECT_EQ(format_device_features(sheet.features),
            "device,spec:cores,spec:mhz\npi 3,4,1200\npi 4,4,\n");
  EXPECT_THAT(sheet.left_out, ElementsAre("soc"));
}

TEST(SheetFeatures, RefuseAbsurdSheets) {
  EXPECT_THAT(sheet_in("name,cores\na,1\n").error().message, HasSubstr("no column 'device'"));
  EXPECT_THAT(sheet_in("device,soc\na,x\n").error().message, HasSubstr("no column of features"));
  EXPECT_THAT(sheet_in("device,cores\na,1\na,2\n").error().message, HasSubstr("second time"));
  EXPECT_THAT(sheet_in("device,cores\na,-1\n").error().message, HasSubstr("s.csv:2:3"));
}

}  // namespace
}  // namespace fleetfit::learned
