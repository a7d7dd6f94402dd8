#include "train/subnet_sampler.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/train/tiny_supernet.h"

namespace fleetfit::train {
namespace {

double block_flops(double inner) { return 2 * 64 * 9 * 2 * 8 * inner; }
constexpr double kStem = 2 * 64 * 9 * 8;
constexpr double kHead = 2 * 512 * 3;

TEST(SubnetSampler, CountsMultiplyAccumulatesAndLayersAsSharesOfTheOriginal) {
  const auto sampler = SubnetSampler::create(tiny_supernet()).value();
  const double original = kStem + 3 * block_flops(8) + kHead;
  EXPECT_NEAR(sampler.mac_share(sampler.original()), 1, 1e-12);
  EXPECT_NEAR(sampler.cost(sampler.original()), 1, 1e-12);
  EXPECT_NEAR(sampler.most_cost(), 1, 1e-9);
  const SubnetPath merged = {{.block = 0}, {.block = 1, .branch = 2}, {.block = 3}, {.block = 4}};
  const double macs = (kStem + 2 * block_flops(8) + kHead) / original;
  EXPECT_NEAR(sampler.mac_share(merged), macs, 1e-12);
  // Stem, three blocks of two convolutions and the head are eight layers; two of them are gone.
  EXPECT_NEAR(sampler.cost(merged), (macs + 6.0 / 8) / 2, 1e-12);
}

TEST(SubnetSampler, DrawsEverySubnetAlike) {
  const auto sampler = SubnetSampler::create(tiny_supernet()).value();
  core::Random random(1);
  std::map<SubnetPath, int> seen;
  constexpr int kDraws = 12'000;
  for (int i = 0; i < kDraws; ++i) ++seen[sampler.draw(random)];
  // Two ways for the last block; four for the last two and a merged one; then 2 x 5 + 2.
  ASSERT_EQ(seen.size(), 12U);
  for (const auto& [path, count] : seen) EXPECT_NEAR(count, 1000, 130);
}

TEST(SubnetSampler, MeetsTheCostAskedForOnAverage) {
  const auto sampler = SubnetSampler::create(tiny_supernet()).value();
  core::Random random(1);
  for (const double wanted : {0.75, 0.85, 0.95}) {
    double sum = 0;
    constexpr int kDraws = 2000;
    for (int i = 0; i < kDraws; ++i) sum += sampler.cost(sampler.draw_near(wanted, random));
    EXPECT_NEAR(sum / kDraws, wanted, 0.02);
  }
}

TEST(SubnetSampler, SpreadsFromTheCheapestToTheDearest) {
  const auto sampler = SubnetSampler::create(tiny_supernet()).value();
  core::Random random(1);
  const auto paths = sampler.draw_spread(5, random);
  ASSERT_EQ(paths.size(), 5U);
  EXPECT_NEAR(sampler.cost(paths.front()), sampler.least_cost(), 1e-9);
  EXPECT_TRUE(SubnetSampler::is_original(paths.back()));
}

TEST(SubnetSampler, RefusesAModelThatMultipliesNothing) {
  graph::NetBuilder net("relu", 1);
  net.output(net.activate(net.input("x", {1, 2}), graph::kRelu), "y");
  const elastic::Supernet supernet{
      .name = "relu", .blocks = {{.branches = {{.graph = std::move(net).finish().value()}}}}};
  EXPECT_EQ(SubnetSampler::create(supernet).error().code, ErrorCode::invalid_input);
}

}  // namespace
}  // namespace fleetfit::train
