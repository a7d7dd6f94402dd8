#include "fleetfit/graph/task_networks.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "fleetfit/graph/net_builder.h"

namespace fleetfit::graph {
namespace {

constexpr Activation kLeaky{ActivationKind::leaky_relu, 0.1F};

TensorId pool_time(NetBuilder& net, TensorId x) {
  const Window window{.kernel = {1, 4},
                      .strides = {1, 4},
                      .dilations = {1, 1},
                      .pads_begin = {0, 0},
                      .pads_end = {0, 0}};
  return net.node(Pool{.kind = PoolKind::max, .window = window}, {x});
}

TensorId over_time(NetBuilder& net, TensorId x, std::int64_t out) {
  return pool_time(net, net.conv_bn(x, {.out = out, .kernel = 1, .kernel_w = 3}, kRelu));
}

/// One state after the other: tanh(input + state x weights).
std::vector<TensorId> recur(NetBuilder& net, TensorId inputs, std::int64_t hidden) {
  const auto steps = net.shape(inputs).size() > 1 ? net.shape(inputs)[1] : 0;
  const auto parts = net.split(inputs, Ints(static_cast<std::size_t>(steps), 1), 1);
  // Somewhat below what keeps a state's size, so that the past fades.
  const double stddev = 0.5 / std::sqrt(static_cast<double>(hidden));
  const auto weights = net.parameter("Rnn.weight", {hidden, hidden}, stddev);
  std::vector<TensorId> states;
  for (const auto part : parts) {
    auto x = net.reshape(part, {0, hidden});
    if (!states.empty()) x = net.add(x, net.matmul(states.back(), weights));
    states.push_back(net.activate(x, kTanh));
  }
  return states;
}

/// N x length x features to the means of `stride` neighbours each.
TensorId means_of_windows(NetBuilder& net, TensorId x, std::int64_t stride) {
  const auto& shape = net.shape(x);
  if (shape.size() != 3 || stride == 1) return x;
  const auto steps = shape[1] / stride;
  const auto features = shape[2];
  if (steps * stride < shape[1]) x = net.slice(x, 1, 0, steps * stride);
  return net.mean(net.reshape(x, {0, steps, stride, features}), {2});
}

Status check_positive(std::initializer_list<std::pair<const char*, std::int64_t>> options) {
  for (const auto& [name, value] : options)
    if (value < 1)
      return fail(ErrorCode::invalid_input,
                  fmt::format("{} is {} and should be positive", name, value));
  return {};
}

}  // namespace

Result<Graph> build_m5(const M5Options& options) {
  FLEETFIT_TRY(check_positive(
      {{"channels", options.channels}, {"classes", options.classes}, {"stride", options.stride}}));
  constexpr std::int64_t kFirstKernel = 80;
  constexpr std::int64_t kPoolings = std::int64_t{4} * 4 * 4 * 4;
  const auto first = (options.length - 1) / options.stride + 1;
  if (options.length < 1 || first < kPoolings)
    return fail(ErrorCode::invalid_input,
                fmt::format("a recording of {} samples is too short for M5 with a stride of {}: it "
                            "needs {}",
                            options.length, options.stride, (kPoolings - 1) * options.stride + 1));
  NetBuilder net("m5", options.seed);
  auto x = net.input("wave", {1, 1, 1, options.length});
  x = net.pad(x, 0, kFirstKernel / 2, 0, kFirstKernel / 2 - 1);
  x = net.conv_bn(x,
                  {.out = options.channels,
                   .kernel = 1,
                   .stride = options.stride,
                   .pad = 0,
                   .kernel_w = kFirstKernel,
                   .pad_w = 0},
                  kRelu);
  x = pool_time(net, x);
  x = over_time(net, x, options.channels);
  x = over_time(net, x, 2 * options.channels);
  x = over_time(net, x, 2 * options.channels);
  x = net.flatten(net.global_average_pool(x));
  x = net.node(Dropout{}, {x});
  net.output(net.linear(x, options.classes), "logits");
  return std::move(net).finish();
}

Result<Graph> build_text_rnn(const TextRnnOptions& options) {
  FLEETFIT_TRY(check_positive({{"vocabulary", options.vocabulary},
                               {"embedding", options.embedding},
                               {"hidden", options.hidden},
                               {"classes", options.classes},
                               {"stride", options.stride}}));
  if (options.stride > options.length)
    return fail(ErrorCode::invalid_input,
                fmt::format("a stride of {} words is longer than a text of {}", options.stride,
                            options.length));
  NetBuilder net("text_rnn", options.seed);
  const auto words = net.input("words", {1, options.length}, DType::i64);
  const auto table =
      net.parameter("Embedding.weight", {options.vocabulary, options.embedding}, 0.3);
  auto x = net.node(Gather{}, {table, words}, "Embedding");
  x = net.node(Dropout{}, {x});
  x = means_of_windows(net, x, options.stride);
  const auto states = recur(net, net.linear(x, options.hidden), options.hidden);
  std::vector<TensorId> rows;
  for (const auto state : states) rows.push_back(net.reshape(state, {0, 1, options.hidden}));
  x = states.size() == 1 ? states[0] : net.mean(net.concat(rows, 1), {1});
  x = net.node(Dropout{}, {x});
  net.output(net.linear(x, options.classes), "logits");
  return std::move(net).finish();
}

Result<Graph> build_small_yolo(const SmallYoloOptions& options) {
  FLEETFIT_TRY(check_positive(
      {{"channels", options.channels}, {"classes", options.classes}, {"size", options.size}}));
  if (options.size % kYoloCell != 0)
    return fail(ErrorCode::invalid_input,
                fmt::format("a size of {} pixels is no multiple of {}", options.size, kYoloCell));
  NetBuilder net("small_yolo", options.seed);
  const auto conv = [&](TensorId x, std::int64_t out, std::int64_t kernel) {
    return net.conv_bn(x, {.out = scaled_channels(out, options.width), .kernel = kernel}, kLeaky);
  };
  auto x = net.input("image", {1, options.channels, options.size, options.size});
  for (const std::int64_t out : {32, 64, 128}) {
    x = conv(x, out, 3);
    x = net.max_pool(x, {.kernel = 2, .stride = 2});
  }
  x = conv(conv(conv(x, 256, 3), 128, 1), 256, 3);
  x = net.node(Dropout{}, {x});
  net.output(net.conv(x, {.out = 5 + options.classes, .kernel = 1, .bias = true}), "cells");
  return std::move(net).finish();
}

}  // namespace fleetfit::graph
