#include "app/predict/profiled_networks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "fleetfit/graph/net_builder.h"

namespace fleetfit::app {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

constexpr double kTiny = 1e-12;

graph::Graph two_convolutions() {
  graph::NetBuilder b("net", 1);
  const auto first = b.conv(b.input("x", {1, 3, 16, 16}), {.out = 8, .kernel = 3});
  b.output(b.conv(first, {.out = 4, .kernel = 1}), "y");
  return std::move(b).finish().value();
}

/// The two convolutions took 2 and 1 ms, and 1 ms passed between them.
store::MeasurementRecord profile_of(const graph::Graph& graph, double latency_ms) {
  store::MeasurementRecord record{
      .model_name = "net", .latency = store::Latency{.median_ms = latency_ms}, .overhead_ms = 1};
  double ms = 2;
  for (const auto& node : graph.nodes) {
    record.operators.push_back({.name = node.name, .type = "Conv", .ms = ms});
    ms /= 2;
  }
  return record;
}

class KernelSamples : public testing::Test {
 protected:
  predict::NetworkSample sample(double latency_ms) {
    return sample_of(graph_, rules_, profile_of(graph_, latency_ms)).value();
  }

  graph::Graph graph_ = two_convolutions();
  cost::KernelRules rules_ = cost::KernelRules::builtin("engine").value();
};

TEST_F(KernelSamples, HaveTheTimesOfTheProfile) {
  const auto all = sample(4.5);
  ASSERT_EQ(all.kernels.size(), 2u);
  EXPECT_DOUBLE_EQ(all.kernels[0].ms, 2);
  EXPECT_DOUBLE_EQ(all.kernels[1].ms, 1);
  EXPECT_DOUBLE_EQ(all.overhead_ms, 1);
  EXPECT_DOUBLE_EQ(all.latency_ms, 4.5);
}

TEST_F(KernelSamples, KeepTheirTimesWhereProfilingCostTimeBetweenThem) {
  const auto all = sample(3.25);
  ASSERT_EQ(all.kernels.size(), 2u);
  EXPECT_DOUBLE_EQ(all.kernels[0].ms, 2);
  EXPECT_DOUBLE_EQ(all.kernels[1].ms, 1);
  EXPECT_DOUBLE_EQ(all.overhead_ms, 0.25);
}

TEST_F(KernelSamples, TakeNoLongerTogetherThanTheNetworkDidByItself) {
  const auto all = sample(2.4);
  ASSERT_EQ(all.kernels.size(), 2u);
  EXPECT_THAT(all.kernels[0].ms, DoubleNear(1.6, kTiny));
  EXPECT_THAT(all.kernels[1].ms, DoubleNear(0.8, kTiny));
  EXPECT_EQ(all.overhead_ms, 0);
  EXPECT_DOUBLE_EQ(all.latency_ms, 2.4);
}

TEST_F(KernelSamples, NeedOperators) {
  auto record = profile_of(graph_, 4);
  record.operators.clear();
  const auto sample = sample_of(graph_, rules_, record);
  ASSERT_FALSE(sample);
  EXPECT_EQ(sample.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(sample.error().message, HasSubstr("without operators"));
}

TEST_F(KernelSamples, NeedOperatorsOfTheNetwork) {
  auto record = profile_of(graph_, 4);
  for (auto& op : record.operators) op.name = "of_another";
  EXPECT_FALSE(sample_of(graph_, rules_, record));
}

}  // namespace
}  // namespace fleetfit::app
