#include "train/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fleetfit::train {
namespace {

// What the paper of Adam writes, for one parameter, with decay as part of the gradient.
struct Paper {
  double value;
  double m = 0;
  double v = 0;

  void step(double gradient, double rate, double decay, int t) {
    const double g = gradient + decay * value;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    value -= rate * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
};

TEST(Adam, StepsAsThePaperSays) {
  constexpr int kCount = 37;  // no multiple of any vector's length
  std::vector<Paper> expected;
  std::vector<float> values;
  for (int i = 0; i < kCount; ++i) {
    values.push_back(static_cast<float>(i - 20) / 7);
    expected.push_back({values.back()});
  }
  std::vector<float> mean(kCount);
  std::vector<float> square(kCount);
  for (int t = 1; t <= 50; ++t) {
    std::vector<float> gradient;
    for (int i = 0; i < kCount; ++i) {
      gradient.push_back(static_cast<float>(std::sin(i + 3 * t)));
      expected[static_cast<std::size_t>(i)].step(gradient.back(), 0.01, 0.001, t);
    }
    adam_step(adam_rate(0.01, 0.001, t), gradient, mean, square, values);
  }
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_NEAR(values[i], expected[i].value, 2e-6) << i;
}

TEST(Adam, StaysWhereNothingPulls) {
  std::vector<float> values{0, 1};
  std::vector<float> mean(2);
  std::vector<float> square(2);
  adam_step(adam_rate(0.1, 0, 1), std::vector<float>{0, 0}, mean, square, values);
  EXPECT_EQ(values, (std::vector<float>{0, 1}));
}

}  // namespace
}  // namespace fleetfit::train
