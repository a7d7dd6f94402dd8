#include "train/torch/parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fleetfit::train {
namespace {

at::Tensor parameter_of(double value) {
  return at::full({1}, value, at::kFloat).set_requires_grad(true);
}

// Leaves the gradient 3 x^2 of x^3.
void leave_gradient(const at::Tensor& x) { x.pow(3).sum().backward(); }

TEST(Optimizer, TakesNesterovsSteps) {
  const auto x = parameter_of(2);
  TorchOptimizer optimizer({x}, {true}, {.momentum = 0.5, .decay = 0.1});
  double expected = 2;
  double velocity = 0;
  for (int step = 0; step < 3; ++step) {
    leave_gradient(x);
    optimizer.step(0.01);
    const double slope = 3 * expected * expected + 0.1 * expected;
    velocity = 0.5 * velocity + slope;
    expected -= 0.01 * (slope + 0.5 * velocity);
    EXPECT_NEAR(x.item<double>(), expected, 1e-6);
    EXPECT_FALSE(x.grad().defined());
  }
}

TEST(Optimizer, LetsOnlySomeParametersDecay) {
  const auto weight = parameter_of(2);
  const auto shift = parameter_of(2);
  TorchOptimizer optimizer({weight, shift}, {true, false}, {.momentum = 0, .decay = 1});
  weight.mul(0).sum().backward();
  shift.mul(0).sum().backward();
  optimizer.step(0.25);
  EXPECT_FLOAT_EQ(weight.item<float>(), 1.5F);
  EXPECT_FLOAT_EQ(shift.item<float>(), 2);
}

TEST(Optimizer, TakesAdamsSteps) {
  const auto x = parameter_of(2);
  TorchOptimizer optimizer({x}, {true}, {.kind = OptimizerKind::adam, .decay = 0.1});
  double expected = 2;
  double mean = 0;
  double square = 0;
  for (int step = 1; step <= 3; ++step) {
    leave_gradient(x);
    optimizer.step(0.01);
    const double slope = 3 * expected * expected;
    expected -= 0.01 * 0.1 * expected;
    mean = 0.9 * mean + 0.1 * slope;
    square = 0.999 * square + 0.001 * slope * slope;
    expected -= 0.01 * (mean / (1 - std::pow(0.9, step))) /
                (std::sqrt(square / (1 - std::pow(0.999, step))) + 1e-8);
    EXPECT_NEAR(x.item<double>(), expected, 1e-5);
  }
}

TEST(Optimizer, CutsLongGradients) {
  const auto a = parameter_of(0);
  const auto b = parameter_of(0);
  TorchOptimizer optimizer({a, b}, {false, false}, {.momentum = 0, .max_norm = 1});
  a.mul(3).sum().backward();
  b.mul(4).sum().backward();
  optimizer.step(1);
  EXPECT_NEAR(a.item<double>(), -0.6, 1e-6);
  EXPECT_NEAR(b.item<double>(), -0.8, 1e-6);
}

TEST(Optimizer, GoesOnFromItsState) {
  const auto x = parameter_of(2);
  TorchOptimizer first({x}, {false}, {});
  leave_gradient(x);
  first.step(0.01);
  const auto y = parameter_of(x.item<double>());
  TorchOptimizer second({y}, {false}, {});
  for (std::size_t i = 0; i < first.state().size(); ++i) second.state()[i].copy_(first.state()[i]);
  for (const auto& [tensor, optimizer] : {std::pair(x, &first), std::pair(y, &second)}) {
    leave_gradient(tensor);
    optimizer->step(0.01);
  }
  EXPECT_EQ(x.item<float>(), y.item<float>());
}

TEST(Schedule, RisesThenFallsToNothing) {
  std::vector<double> rates;
  for (int step = 0; step < 100; ++step) rates.push_back(one_cycle_rate(0.5, step, 100));
  const auto highest = std::max_element(rates.begin(), rates.end());
  EXPECT_NEAR(*highest, 0.5, 0.01);
  EXPECT_NEAR(static_cast<double>(highest - rates.begin()), 20, 1);
  EXPECT_TRUE(std::is_sorted(rates.begin(), highest));
  EXPECT_TRUE(std::is_sorted(rates.rbegin(), std::make_reverse_iterator(highest)));
  EXPECT_LT(rates.back(), 0.001);
}

}  // namespace
}  // namespace fleetfit::train
