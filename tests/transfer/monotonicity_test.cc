#include "fleetfit/transfer/monotonicity.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::transfer {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Table {
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;
  DeviceColumns columns() const { return {names, values}; }
};

TEST(CorrelationMatrix, IsSpearmansOfEachPairWithMeanRanksForTies) {
  core::Random random(3);
  Table table{.names = {"a", "b", "c"}, .values = std::vector(3, std::vector<double>(400))};
  for (auto& column : table.values)
    for (auto& cell : column) cell = static_cast<double>(random.between(1, 60));

  const auto matrix = correlation_matrix(table.columns()).value();

  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(matrix.srcc[i][i], 1);
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_NEAR(matrix.srcc[i][j], core::spearman(table.values[i], table.values[j]).value(),
                  1e-12);
      EXPECT_EQ(matrix.srcc[i][j], matrix.srcc[j][i]);
      EXPECT_EQ(matrix.designs[i][j], 400u);
    }
  }
}

TEST(CorrelationMatrix, TakesForEachPairTheDesignsThatBothMeasured) {
  // Rows 0, 2, 3, 4 are common: ranks 1 2 3 4 and 2 1 3 4, so 1 - 6 * 2 / (4 * 15).
  const Table table{.names = {"a", "b"},
                    .values = {{1, 9, 2, 3, 4, kNone}, {20, kNone, 10, 30, 40, 5}}};
  const auto matrix = correlation_matrix(table.columns()).value();
  EXPECT_NEAR(matrix.srcc[0][1], 0.8, 1e-15);
  EXPECT_EQ(matrix.designs[0][1], 4u);
  EXPECT_EQ(matrix.designs[0][0], 5u);
}

TEST(CorrelationMatrix, NamesADeviceWithoutAnOrder) {
  const Table table{.names = {"a", "flat"}, .values = {{1, 2, 3}, {7, 7, 7}}};
  const auto matrix = correlation_matrix(table.columns());
  ASSERT_FALSE(matrix);
  EXPECT_EQ(matrix.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(matrix.error().message, testing::HasSubstr("'flat': all latencies are equal"));
}

TEST(CorrelationMatrix, NamesDevicesWithTooFewDesignsInCommon) {
  const Table table{.names = {"a", "b"}, .values = {{1, 2, kNone, 3}, {kNone, kNone, 1, 2}}};
  const auto matrix = correlation_matrix(table.columns());
  ASSERT_FALSE(matrix);
  EXPECT_THAT(matrix.error().message,
              testing::AllOf(testing::HasSubstr("'a'"), testing::HasSubstr("'b'"),
                             testing::HasSubstr("1 measured designs in common")));
}

}  // namespace
}  // namespace fleetfit::transfer
