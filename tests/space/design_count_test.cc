#include "fleetfit/space/design_count.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fleetfit::space {
namespace {

TEST(DesignCount, MultipliesBeyond64Bits) {
  DesignCount factorial = 1;
  for (std::uint64_t i = 2; i <= 30; ++i) factorial *= i;
  EXPECT_EQ(factorial.decimal(), "265252859812191058636308480000000");  // 30!
  EXPECT_FALSE(factorial.exact());
  EXPECT_NEAR(factorial.log10(), std::lgamma(31) / std::log(10), 1e-12);
  EXPECT_NEAR(factorial.approximate() / std::tgamma(31), 1, 1e-12);
}

TEST(DesignCount, AddsWithCarry) {
  const DesignCount sum = DesignCount(std::numeric_limits<std::uint64_t>::max()) + DesignCount(1);
  EXPECT_EQ(sum.decimal(), "18446744073709551616");
  EXPECT_FALSE(sum.exact());
  EXPECT_EQ((DesignCount(999'999'999) + DesignCount(1)).decimal(), "1000000000");
}

TEST(DesignCount, IsExactWhereItFits) {
  const auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(DesignCount(most).exact(), most);
  EXPECT_EQ((DesignCount(125) * DesignCount(125)).exact(), 15625U);
  EXPECT_EQ(DesignCount(0).decimal(), "0");
  EXPECT_EQ(DesignCount(0) * DesignCount(7), DesignCount(0));
}

}  // namespace
}  // namespace fleetfit::space
