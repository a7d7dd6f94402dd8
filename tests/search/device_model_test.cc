#include "search/device_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/search/toy_space.h"

namespace fleetfit::search {
namespace {

using Genes = std::vector<space::Choice>;

double proxy_ms(const Genes& d) { return 1 + sum_of(d, {1}); }

class DeviceModelTest : public testing::Test {
 protected:
  void add(const Genes& design, double measured) { model_.add(design, proxy_ms(design), measured); }

  double expected_ms(const Genes& design) const {
    return std::exp(model_.predict(design, proxy_ms(design)).mean);
  }

  ToySpace space_{6, 4};
  DeviceModel model_{space_};
};

TEST_F(DeviceModelTest, LearnsTheFactorBetweenTwoDevices) {
  for (const Genes& design : {Genes{0, 0, 0, 1, 0, 0}, Genes{3, 1, 2, 0, 0, 3},
                              Genes{3, 3, 3, 2, 3, 3}, Genes{1, 2, 0, 3, 1, 0}})
    add(design, 7 * proxy_ms(design));
  model_.fit();
  const Genes unseen = {2, 2, 1, 1, 3, 0};
  EXPECT_NEAR(expected_ms(unseen), 7 * proxy_ms(unseen), 0.05 * 7 * proxy_ms(unseen));
}

TEST_F(DeviceModelTest, IsSureOfWhatWasMeasuredAndLessOfTheRest) {
  const Genes seen = {0, 1, 2, 3, 0, 1};
  add(seen, 20);
  add({3, 3, 3, 3, 3, 3}, 100);
  model_.fit();
  EXPECT_NEAR(expected_ms(seen), 20, 1);
  const Genes unseen = {2, 0, 0, 1, 2, 0};
  EXPECT_LT(model_.predict(seen, proxy_ms(seen)).deviation,
            model_.predict(unseen, proxy_ms(unseen)).deviation);
}

TEST_F(DeviceModelTest, ExpectsADearKindOfOperatorToBeDearElsewhere) {
  // Choice 3 is dear on the device; it was met in the first three genes alone.
  for (const Genes& design :
       {Genes{3, 0, 1, 0, 1, 0}, Genes{3, 3, 0, 1, 0, 1}, Genes{1, 3, 3, 0, 0, 2}}) {
    const auto threes = std::ranges::count(design, space::Choice{3});
    add(design, proxy_ms(design) * std::exp(0.3 * static_cast<double>(threes)));
  }
  for (const Genes& design :
       {Genes{1, 0, 2, 0, 1, 2}, Genes{2, 2, 0, 1, 1, 1}, Genes{0, 1, 1, 2, 2, 0}})
    add(design, proxy_ms(design));
  model_.fit();
  const Genes with = {0, 1, 0, 3, 3, 3};
  const Genes without = {2, 2, 2, 2, 2, 0};
  EXPECT_GT(expected_ms(with) / proxy_ms(with), 1.3 * expected_ms(without) / proxy_ms(without));
}

TEST_F(DeviceModelTest, TellsTheChanceToKeepALimit) {
  const DeviceModel::Prediction predicted{.mean = std::log(10), .deviation = 0.1};
  EXPECT_NEAR(DeviceModel::chance_below(predicted, 10), 0.5, 1e-12);
  // One deviation above the mean: 84.13 % of a normal distribution.
  EXPECT_NEAR(DeviceModel::chance_below(predicted, 10 * std::exp(0.1)), 0.8413, 1e-4);
}

}  // namespace
}  // namespace fleetfit::search
