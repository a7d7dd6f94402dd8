#include "fleetfit/learned/device_features.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/core/temporary_folder.h"

namespace fleetfit::learned {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<DeviceFeatures> features_in(std::string text) {
  const auto csv = core::parse_csv(std::move(text), "f.csv");
  if (!csv) return tl::unexpected(csv.error());
  return device_features_of(*csv, "f.csv");
}

std::string refusal_of(std::string text) {
  const auto features = features_in(std::move(text));
  if (features) return "was read";
  EXPECT_EQ(features.error().code, ErrorCode::invalid_input);
  return features.error().message;
}

TEST(DeviceFeatures, ReadsDevicesAndColumnsOfAllKinds) {
  const auto features = *features_in(
      "device,ref:nasbench201@1:421233,net:resnet18,probe:peak_gflop_per_s,spec:cores\n"
      "pixel3,12.5,80,,8\n"
      "raspi4,40,,9.5,4\n");

  EXPECT_THAT(features.devices, ElementsAre("pixel3", "raspi4"));
  ASSERT_EQ(features.columns.size(), 4);
  EXPECT_EQ(features.columns[0].space, "nasbench201");
  EXPECT_EQ(features.columns[0].version, 1);
  EXPECT_EQ(features.columns[0].name, "421233");
  EXPECT_EQ(features.columns[1].kind, FeatureKind::reference_network);
  EXPECT_EQ(features.columns[3].name, "cores");
  EXPECT_DOUBLE_EQ(features.row(1)[0], 40);
  EXPECT_TRUE(std::isnan(features.row(1)[1]));
  EXPECT_TRUE(std::isnan(features.row(0)[2]));
}

TEST(DeviceFeatures, AreWrittenAsTheyAreRead) {
  const std::string text =
      "device,ref:ofa-mbv3@2:a:b@c,spec:cores\n"
      "\"one, two\",0.125,\n"
      "three,,4\n";
  EXPECT_EQ(format_device_features(*features_in(text)), text);

  const core::TemporaryFolder folder;
  const auto path = folder.path() / "f.csv";
  ASSERT_TRUE(write_device_features(path, *features_in(text)));
  EXPECT_EQ(format_device_features(*read_device_features(path)), text);
}

TEST(DeviceFeatures, RefuseAColumnThatDoesNotSayWhatItIs) {
  EXPECT_THAT(refusal_of("device,cores\na,1\n"), HasSubstr("column 'cores' is no feature"));
  EXPECT_THAT(refusal_of("device,gpu:cores\na,1\n"), HasSubstr("'gpu:cores' is no feature"));
  EXPECT_THAT(refusal_of("device,spec:\na,1\n"), HasSubstr("it has no name"));
  for (const auto* reference :
       {"ref:421233", "ref:@1:4", "ref:nasbench201@1:", "ref:nasbench201:4"})
    EXPECT_THAT(refusal_of(std::string("device,") + reference + "\na,1\n"),
                HasSubstr("no feature"));
  for (const auto* version : {"0", "-1", "x", "", "99999999999"}) {
    EXPECT_THAT(refusal_of(std::string("device,ref:nasbench201@") + version + ":4\na,1\n"),
                HasSubstr("version"));
  }
}

TEST(DeviceFeatures, RefuseTwoColumnsThatAreTheSameFeature) {
  EXPECT_THAT(refusal_of("device,ref:s@1:4,ref:s@01:4\na,1,1\n"),
              HasSubstr("two columns 'ref:s@1:4'"));
}

TEST(DeviceFeatures, RefuseAFileWithoutDevicesOrFeatures) {
  EXPECT_THAT(refusal_of("name,spec:cores\na,1\n"), HasSubstr("no column 'device'"));
  EXPECT_THAT(refusal_of("device\na\n"), HasSubstr("no column of features"));
}

TEST(DeviceFeatures, RefuseAbsurdNumbersNamingTheirPlace) {
  EXPECT_THAT(refusal_of("device,net:a\nx,1\ny,-3\n"), HasSubstr("f.csv:3:3: column 'net:a': -3"));
  EXPECT_THAT(refusal_of("device,net:a\nx,0\n"), HasSubstr("has to be positive"));
  EXPECT_THAT(refusal_of("device,net:a\nx,1e9\n"), HasSubstr("longer than a day"));
  EXPECT_THAT(refusal_of("device,net:a\nx,inf\n"), HasSubstr("expected a number, found 'inf'"));
  EXPECT_THAT(refusal_of("device,net:a\nx,nan\n"), HasSubstr("expected a number, found 'nan'"));
  EXPECT_THAT(refusal_of("device,net:a\nx,fast\n"), HasSubstr("expected a number, found 'fast'"));
  EXPECT_THAT(refusal_of("device,spec:cores\nx,-1\n"), HasSubstr("negative"));
  EXPECT_THAT(refusal_of("device,spec:cores\nx,1e19\n"), HasSubstr("larger than"));
  EXPECT_TRUE(features_in("device,spec:int8\nx,0\n"));
}

TEST(DeviceFeatures, RefuseADeviceTwiceOrWithoutAName) {
  EXPECT_THAT(refusal_of("device,net:a\nx,1\nx,2\n"),
              HasSubstr("f.csv:3:1: the device 'x' stands"));
  EXPECT_THAT(refusal_of("device,net:a\n,1\n"), HasSubstr("no name"));
}

TEST(DeviceFeatures, NameTheDevicesThatThereAre) {
  const auto features = *features_in("device,net:a\nx,1\ny,2\n");
  EXPECT_EQ(*features.find_device("y"), 1);
  EXPECT_EQ(features.find_device("z").error().message,
            "f.csv: there is no device 'z'; there are x, y");
}

space::DesignTable small_table() {
  const auto& cells = **space::find_space("nasbench201");
  const auto csv =
      *core::parse_csv("ops,pi,phone\n421233,40,12\n000000,1,2\n333333,90,\n", "t.csv");
  return *space::design_table_of(csv, "t.csv", cells);
}

TEST(ReferenceFeatures, AreTheLatenciesOfRowsOfATable) {
  const std::vector<std::size_t> rows = {2, 0};
  const auto features = *reference_features(small_table(), rows);

  EXPECT_EQ(format_device_features(features),
            "device,ref:nasbench201@1:333333,ref:nasbench201@1:421233\n"
            "pi,90,40\n"
            "phone,,12\n");
}

TEST(ReferenceFeatures, NeedRowsOfTheTable) {
  const auto refusal = [](std::vector<std::size_t> rows) {
    return reference_features(small_table(), rows).error().message;
  };
  EXPECT_EQ(refusal({}), "there is no reference design");
  EXPECT_EQ(refusal({0, 3}), "t.csv: there is no row 3; the table has 3");
  EXPECT_EQ(refusal({1, 1}), "t.csv: row 1 is named twice");
}

TEST(JoinedFeatures, LackWhatOneOfTheFilesDoesNotTell) {
  const auto a = *features_in("device,net:a\nx,1\ny,2\n");
  const auto b = *features_in("device,spec:cores\nz,8\ny,4\n");
  EXPECT_EQ(format_device_features(*join_features(a, b)),
            "device,net:a,spec:cores\nx,1,\ny,2,4\nz,,8\n");
  EXPECT_THAT(join_features(a, a).error().message, HasSubstr("'net:a' is a column of f.csv and"));
}

}  // namespace
}  // namespace fleetfit::learned
