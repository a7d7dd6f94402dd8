#include "train/torch/parameters.h"

#include <gtest/gtest.h>

namespace fleetfit::train {
namespace {

TorchParameters three_layers(const core::Random& random) {
  TorchParameters parameters(1e-3);
  parameters.add_layer(5, 16, random.split("first"));
  parameters.add_layer(16, 8, random.split("second"));
  parameters.add_layer(8, 1, random.split("last"));
  return parameters;
}

at::Tensor random_tensor(core::Random random, std::int64_t rows, std::int64_t columns) {
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return tensor_of(values, rows, columns);
}

TEST(TorchParameters, LearnAChainAsAutogradDoes) {
  const core::Random random(7);
  auto by_hand = three_layers(random);
  auto by_autograd = three_layers(random);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const auto batch = random.split(step);
    const auto rows = random_tensor(batch.split("rows"), 9, 5);
    const auto slope = random_tensor(batch.split("slope"), 9, 1);
    const auto offset = random_tensor(batch.split("offset"), 9, 1);
    by_hand.learn_chain(rows, slope, offset, 0.01);
    by_autograd.learn(by_autograd.apply_chain(0, 3, rows), slope, offset, 0.01);
  }
  by_hand.keep();
  by_autograd.keep();
  const auto start = three_layers(random).kept(0, 3);
  const auto mine = by_hand.kept(0, 3);
  const auto theirs = by_autograd.kept(0, 3);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    EXPECT_NE(mine[layer].weights, start[layer].weights);
    for (std::size_t i = 0; i < mine[layer].weights.size(); ++i)
      EXPECT_NEAR(mine[layer].weights[i], theirs[layer].weights[i], 1e-5);
    for (std::size_t i = 0; i < mine[layer].bias.size(); ++i)
      EXPECT_NEAR(mine[layer].bias[i], theirs[layer].bias[i], 1e-5);
  }
}

}  // namespace
}  // namespace fleetfit::train
