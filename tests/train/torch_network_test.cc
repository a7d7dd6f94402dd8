#include "train/torch/network.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fleetfit/cost/cost.h"
#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/shape_inference.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::train {
namespace {

using graph::Graph;
using graph::NetBuilder;
using graph::TensorId;
using testing::HasSubstr;

at::Tensor to_torch(const graph::Value& value) {
  auto tensor = at::empty(value.shape, at::kFloat);
  value.data.copy_to({static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()});
  return tensor;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().max().item<double>();
}

// How far the two are apart, relative to the largest number.
double distance(const at::Tensor& got, const graph::Value& expected) {
  const auto wanted = to_torch(expected);
  EXPECT_EQ(got.sizes(), wanted.sizes());
  if (got.sizes() != wanted.sizes()) return HUGE_VAL;
  const double scale = std::max(1e-3, wanted.abs().max().item<double>());
  return largest_difference(got, wanted) / scale;
}

// Runs the network on a batch of another size than its graph says, and the interpreter on the graph
// with that batch written into it.
void expect_same_as_interpreter(const Graph& graph, std::int64_t batch) {
  auto network = TorchNetwork::create(graph, at::kCPU);
  ASSERT_TRUE(network) << network.error().message;
  auto bound = graph;
  ASSERT_TRUE(graph::bind_dimensions(bound, {{"N", batch}}));
  const auto inputs = graph::random_inputs(bound, 7);
  const auto expected = graph::evaluate(bound, inputs);
  ASSERT_TRUE(expected) << expected.error().message;

  const at::NoGradGuard at_work;
  std::vector<at::Tensor> tensors;
  for (const auto& input : inputs) tensors.push_back(to_torch(input));
  const auto outputs = (*network)->forward(tensors);
  ASSERT_EQ(outputs.size(), expected->size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    EXPECT_LT(distance(outputs[i], (*expected)[i]), 1e-4) << graph.name << " output " << i;
}

struct Family {
  const char* name;
  std::int64_t image = 32;
  double width = 1;
};

class ZooFamily : public testing::TestWithParam<Family> {};

TEST_P(ZooFamily, ComputesWhatTheInterpreterDoes) {
  const auto& family = GetParam();
  const auto graph = graph::build_zoo_network(
      family.name, {.width = family.width, .classes = 7, .image = family.image});
  ASSERT_TRUE(graph) << graph.error().message;
  expect_same_as_interpreter(*graph, 2);
}

INSTANTIATE_TEST_SUITE_P(
    All, ZooFamily,
    testing::Values(Family{"resnet8", 12}, Family{"mobilenet_v2_small", 8, 0.25},
                    Family{"mobilenet_v3_small", 32, 0.5}, Family{"vgg11_bn", 32, 0.05},
                    Family{"densenet121", 32, 0.25}, Family{"vit_b_16", 32, 0.08},
                    Family{"shufflenet_v2_x0_5", 32}, Family{"shufflenet_v1_g3_x0_5", 32},
                    Family{"squeezenet1_1", 48, 0.25}, Family{"efficientnet_b0", 32, 0.25},
                    Family{"lenet5", 28}, Family{"convnext_tiny", 32, 0.1},
                    Family{"googlenet", 64, 0.1}, Family{"alexnet", 64, 0.05}),
    [](const auto& family) { return std::string(family.param.name); });

TEST(TorchNetwork, ComputesTheSameAfterFusionsAndInChannelsLast) {
  auto graph =
      graph::build_zoo_network("mobilenet_v3_small", {.width = 0.5, .classes = 5, .image = 32})
          .value();
  ASSERT_TRUE(graph::simplify(graph));
  expect_same_as_interpreter(graph, 2);
  ASSERT_TRUE(graph::convert_layout(graph, graph::Layout::nhwc));
  expect_same_as_interpreter(graph, 2);
}

// Exporters write the batch of their example into shapes.
TEST(TorchNetwork, TakesExtentsThatAreTheGraphsBatchForTheBatchAtHand) {
  NetBuilder net("fixed", 1);
  const auto x = net.input("x", {1, 4, 3, 3});
  const auto tokens = net.reshape(x, {1, 4, 9});
  const auto split = net.reshape(tokens, {1, 2, 2, 9});
  const auto flat = net.reshape(split, {1, -1});
  net.output(net.linear(flat, 5), "y");
  const auto graph = std::move(net).finish().value();
  auto network = TorchNetwork::create(graph, at::kCPU).value();
  const auto input = at::randn({3, 4, 3, 3});
  const auto together = network->forward_one(input);
  ASSERT_EQ(together.sizes(), (std::vector<std::int64_t>{3, 5}));
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto alone = network->forward_one(input.slice(0, i, i + 1));
    EXPECT_LT(largest_difference(together.slice(0, i, i + 1), alone), 1e-5);
  }
}

// Operators that no network above has, all in one.
TEST(TorchNetwork, KnowsFurtherOperators) {
  NetBuilder net("further", 3);
  const auto x = net.input("x", {1, 6, 8, 8});
  auto y = net.conv_transpose(x, {.out = 4, .kernel = 3, .stride = 2, .pad = 1});
  const auto slope = net.parameter("slope", {4, 1, 1}, 0.05, 0.25);
  y = net.append(graph::PRelu{}, {y, slope}, "PRelu");
  y = net.resize(y, 2, graph::ResizeMode::linear);
  y = net.resize(y, 0.5, graph::ResizeMode::nearest);
  y = net.lrn(y, {.size = 3, .alpha = 0.5F, .beta = 0.75F, .bias = 1});
  y = net.pad(y, 1, 0, 0, 2);
  y = net.max_pool(y, {.kernel = 3, .stride = 2, .pad = 1, .ceil_mode = true});
  y = net.average_pool(y, {.kernel = 3, .stride = 2, .pad = 1, .ceil_mode = true});
  y = net.average_pool(y,
                       {.kernel = 2, .stride = 2, .ceil_mode = true, .count_include_pad = false});
  y = net.node(graph::InstanceNorm{},
               {y, net.parameter("scale", {4}, 0.1, 1), net.parameter("shift", {4}, 0.1)});
  y = net.node(graph::LpNormalization{.axis = 1}, {y});
  for (const auto kind : {graph::ActivationKind::elu, graph::ActivationKind::softsign,
                          graph::ActivationKind::mish, graph::ActivationKind::softplus,
                          graph::ActivationKind::gelu_tanh, graph::ActivationKind::leaky_relu}) {
    y = net.activate(y, {kind, 0.7F, 0.2F});
  }
  y = net.node(graph::Unary{graph::UnaryKind::square}, {y});
  y = net.node(graph::DepthToSpace{.block = 2}, {y});
  y = net.node(graph::SpaceToDepth{.block = 2}, {y});
  y = net.node(graph::ChannelShuffle{.groups = 2}, {y});
  y = net.node(graph::Reduce{.kind = graph::ReduceKind::l2, .axes = {-1}}, {y});
  y = net.node(graph::Reduce{.kind = graph::ReduceKind::log_sum_exp, .axes = {1}}, {y});
  net.output(y, "y");
  auto graph = std::move(net).finish();
  ASSERT_TRUE(graph) << graph.error().message;
  expect_same_as_interpreter(*graph, 2);
}

TEST(TorchNetwork, GivesTheGraphBackAsItCame) {
  const auto graph = graph::build_zoo_network("resnet8", {.image = 12}).value();
  const auto network = TorchNetwork::create(graph, at::kCPU).value();
  EXPECT_EQ(graph::first_difference(network->graph(), graph), std::nullopt);
}

TEST(TorchNetwork, TrainsAllThatCountsAsAParameter) {
  for (const auto* name : {"resnet8", "mobilenet_v3_small", "squeezenet1_1"}) {
    const auto graph = graph::build_zoo_network(name, {.width = 0.5, .image = 64}).value();
    const auto network = TorchNetwork::create(graph, at::kCPU).value();
    std::int64_t count = 0;
    for (const auto& parameter : network->parameters()) count += parameter.numel();
    EXPECT_EQ(count, cost::count_cost(graph).value().total.params) << name;
  }
  // A class token that is expanded, position embeddings that are added; no temperature.
  const auto vit = graph::build_zoo_network("vit_b_16", {.width = 0.08, .image = 32}).value();
  std::int64_t count = 0;
  for (const auto& parameter : TorchNetwork::create(vit, at::kCPU).value()->parameters()) {
    EXPECT_GT(parameter.numel(), 1);
    count += parameter.numel();
  }
  EXPECT_GE(count, cost::count_cost(vit).value().total.params);
}

at::Tensor some_labels() {
  auto labels = at::empty({16}, at::kLong);
  for (std::int64_t i = 0; i < 16; ++i) labels.data_ptr<std::int64_t>()[i] = i % 4;
  return labels;
}

TEST(TorchNetwork, LearnsAFixedBatchAndExportsWhatItLearnt) {
  const auto graph =
      graph::build_zoo_network("resnet8", {.width = 0.5, .classes = 4, .image = 12}).value();
  auto network = TorchNetwork::create(graph, at::kCPU).value();
  network->batch_statistics(true);
  const auto input = at::randn({16, 3, 12, 12});
  std::vector<double> losses;
  for (int step = 0; step < 12; ++step) {
    const auto loss = at::cross_entropy_loss(network->forward_one(input), some_labels());
    loss.backward();
    losses.push_back(loss.item<double>());
    const at::NoGradGuard no_gradients;
    for (auto& parameter : network->parameters()) {
      ASSERT_TRUE(parameter.grad().defined());
      parameter.sub_(parameter.grad(), 0.1);
      parameter.mutable_grad().reset();
    }
  }
  EXPECT_LT(losses.back(), 0.5 * losses.front());

  network->batch_statistics(false);
  const at::NoGradGuard at_work;
  const auto learnt = network->forward_one(input);
  const auto again = TorchNetwork::create(network->graph(), at::kCPU).value()->forward_one(input);
  EXPECT_LT(largest_difference(learnt, again), 1e-6);

  const auto onnx = graph::export_onnx(network->graph()).value();
  const auto read = graph::import_onnx(std::as_bytes(std::span(onnx)), {}, {.batch = 16}).value();
  const auto from_file = TorchNetwork::create(read.graph, at::kCPU).value()->forward_one(input);
  EXPECT_LT(largest_difference(from_file, learnt), 1e-5);
}

// A batch norm alone: mean and variance of the batch by hand.
TEST(TorchNetwork, NormalizesByTheBatchOrByWhatWasSeenBefore) {
  NetBuilder net("norm", 1);
  const auto x = net.input("x", {1, 1, 1, 1});
  net.output(net.batch_norm(x, 0), "y");
  auto graph = std::move(net).finish().value();
  const auto set = [&](std::size_t i, float value) {
    graph.tensor(graph.nodes[0].inputs[i]).data =
        graph::TensorData::copy(std::vector<float>{value});
  };
  set(1, 1);
  set(2, 0);
  set(3, 10);
  set(4, 4);
  auto network = TorchNetwork::create(graph, at::kCPU).value();
  auto input = at::zeros({4, 1, 1, 1});
  for (std::int64_t i = 0; i < 4; ++i) input[i].fill_(2.0 * static_cast<double>(i));  // 0 2 4 6
  const at::NoGradGuard at_work;
  EXPECT_FLOAT_EQ(network->forward_one(input)[0].item<float>(), -5);  // (0 - 10) / 2

  network->batch_statistics(true, 0.5);
  EXPECT_NEAR(network->forward_one(input)[3].item<float>(), 3 / std::sqrt(5.0), 1e-5);

  network->batch_statistics(false);
  // The mean is now (10 + 3) / 2, the variance (4 + 20 / 3) / 2.
  EXPECT_NEAR(network->forward_one(input)[0].item<float>(), -6.5 / std::sqrt(16.0 / 3), 1e-5);

  // One value has no variance: the running statistics are used, and stay.
  network->batch_statistics(true);
  EXPECT_NEAR(network->forward_one(input.slice(0, 0, 1)).item<float>(), -6.5 / std::sqrt(16.0 / 3),
              1e-5);
}

TEST(TorchNetwork, NamesTheNodeThatCannotBeTrained) {
  NetBuilder net("chooser", 1);
  const auto x = net.input("x", {1, 4});
  net.output(net.node(graph::ArgExtreme{.axis = 1}, {x}, "choice"), "y");
  const auto network = TorchNetwork::create(std::move(net).finish().value(), at::kCPU);
  ASSERT_FALSE(network);
  EXPECT_EQ(network.error().code, ErrorCode::unsupported);
  EXPECT_THAT(network.error().message, HasSubstr("choice_0"));
}

}  // namespace
}  // namespace fleetfit::train
