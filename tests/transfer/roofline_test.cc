#include "fleetfit/transfer/roofline.h"

#include <gmock/gmock.h>

namespace fleetfit::transfer {
namespace {

using testing::HasSubstr;

TEST(Rooflines, CountWhatBoundsDesignsOnEachDevice) {
  // 2, 4 and 8 FLOPs for each byte; ridges at 3 and 6.
  const std::vector<Work> designs = {{200, 100}, {400, 100}, {800, 100}};
  const auto result = compare_rooflines(designs, {30, 10}, {60, 10}).value();
  EXPECT_NEAR(result.compute_bound_a, 2.0 / 3, 1e-12);
  EXPECT_NEAR(result.compute_bound_b, 1.0 / 3, 1e-12);
  EXPECT_NEAR(result.same_bound, 2.0 / 3, 1e-12);
  EXPECT_EQ(result.intensity_low, 2);
  EXPECT_EQ(result.intensity_high, 8);
  EXPECT_THAT(explain(result), HasSubstr("may well differ"));
}

TEST(Rooflines, AgreeWhereOneThingBoundsAllDesignsOnBoth) {
  const std::vector<Work> designs = {{900, 10}, {500, 20}, {700, 1}};
  const auto result = compare_rooflines(designs, {30, 10}, {1, 8}).value();
  EXPECT_NEAR(result.srcc, 1, 1e-12);
  EXPECT_NEAR(result.same_bound, 1, 1e-12);
  EXPECT_THAT(explain(result), HasSubstr("arithmetic bounds nearly all"));
}

TEST(Rooflines, DisagreeWhereArithmeticBoundsOneAndMemoryTheOther) {
  // More arithmetic with fewer bytes.
  const std::vector<Work> designs = {{100, 30}, {200, 20}, {300, 10}};
  const auto result = compare_rooflines(designs, {1, 1000}, {1000, 1}).value();
  EXPECT_NEAR(result.srcc, -1, 1e-12);
  EXPECT_EQ(result.same_bound, 0);
}

TEST(Rooflines, RefuseWhatIsNoPeakAndNoWork) {
  const std::vector<Work> designs = {{1, 1}, {2, 1}};
  EXPECT_THAT(compare_rooflines(designs, {0, 1}, {1, 1}).error().message, HasSubstr("a peak of 0"));
  const std::vector<Work> idle = {{1, 1}, {0, 1}};
  EXPECT_FALSE(compare_rooflines(idle, {1, 1}, {1, 1}));
}

}  // namespace
}  // namespace fleetfit::transfer
