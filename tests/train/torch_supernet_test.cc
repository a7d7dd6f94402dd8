#include "train/torch/supernet.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>

#include "tests/train/tiny_supernet.h"

namespace fleetfit::train {
namespace {

class Tuning : public testing::Test {
 protected:
  /// The loss of a subnet in a step that moves nothing.
  double loss(const SubnetPath& subnet, double feature_weight) {
    return net_->tune(batch_, {.subnets = {&subnet, 1}, .feature_weight = feature_weight}).value();
  }

  core::ThreadPool pool_{1};
  std::unique_ptr<TorchSupernet> net_ =
      TorchSupernet::create(tiny_supernet(), at::kCPU, pool_).value();
  TorchBatch batch_{.images = at::arange(4 * kTinyImage * kTinyImage, at::kFloat)
                                  .sin()
                                  .view({4, 1, kTinyImage, kTinyImage}),
                    .labels = at::arange(4, at::kLong).remainder(kTinyClasses)};
};

TEST_F(Tuning, WeighsTheErrorOfFeaturesBesideThatOfClasses) {
  const SubnetPath subnet = {{0, 0, 0}, {0, 1, 1}, {0, 2, 2}, {0, 4, 0}};
  const double classes = loss(subnet, 0);
  const double once = loss(subnet, 1) - classes;
  EXPECT_GT(once, 0.01);
  EXPECT_NEAR(loss(subnet, 3) - classes, 3 * once, 1e-4 * once);
}

TEST_F(Tuning, FindsNoErrorInTheFeaturesOfTheOriginal) {
  const SubnetPath original = {{0, 0, 0}, {0, 1, 0}, {0, 2, 0}, {0, 3, 0}, {0, 4, 0}};
  EXPECT_EQ(loss(original, 1), loss(original, 0));
}

}  // namespace
}  // namespace fleetfit::train
