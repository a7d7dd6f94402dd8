#include "measure/probe_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "fleetfit/cost/cost.h"
#include "fleetfit/engine/calibrate.h"
#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::measure {
namespace {

using graph::Graph;
using graph::NetBuilder;
using graph::TensorId;

constexpr std::uint64_t kSeed = 1;

// Activations as in the middle of a network for images: 0.8 MB in float.
TensorId image(NetBuilder& net, std::string name = "x") {
  return net.input(std::move(name), {1, 64, 56, 56});
}

TensorId dense_convolutions(NetBuilder& net) {
  auto x = image(net);
  for (int i = 0; i < 2; ++i)
    x = net.activate(net.conv(x, {.out = 64, .kernel = 3, .bias = true}), graph::kRelu);
  return x;
}

TensorId pointwise_convolutions(NetBuilder& net) {
  auto x = net.input("x", {1, 128, 28, 28});
  for (const int channels : {256, 128})
    x = net.activate(net.conv(x, {.out = channels, .bias = true}), graph::kRelu);
  return x;
}

TensorId depthwise_convolutions(NetBuilder& net) {
  auto x = net.input("x", {1, 128, 56, 56});
  for (int i = 0; i < 2; ++i) {
    x = net.activate(net.conv(x, {.out = 128, .kernel = 3, .groups = 128, .bias = true}),
                     graph::kRelu);
  }
  return x;
}

TensorId fully_connected(NetBuilder& net) { return net.linear(net.input("x", {1, 1280}), 1000); }

TensorId max_pool(NetBuilder& net) {
  return net.max_pool(image(net), {.kernel = 3, .stride = 2, .pad = 1});
}

TensorId global_average_pool(NetBuilder& net) { return net.global_average_pool(image(net)); }

TensorId add(NetBuilder& net) { return net.add(image(net, "a"), image(net, "b")); }

TensorId relu(NetBuilder& net) { return net.activate(image(net), graph::kRelu); }

TensorId sigmoid(NetBuilder& net) { return net.activate(image(net), graph::kSigmoid); }

TensorId concat(NetBuilder& net) { return net.concat({image(net, "a"), image(net, "b")}); }

TensorId transpose(NetBuilder& net) { return net.transpose(image(net), {0, 2, 3, 1}); }

// The attention of a small vision transformer.
TensorId softmax(NetBuilder& net) { return net.softmax(net.input("x", {1, 6, 197, 197})); }

template <int channels, int side>
TensorId large_products(NetBuilder& net) {
  auto x = net.input("x", {1, channels, side, side});
  for (int i = 0; i < 2; ++i) x = net.conv(x, {.out = channels, .bias = true});
  return x;
}

constexpr std::array kClasses = {
    OperatorClass{.name = "conv",
                  .subject = "dense 3x3 convolution",
                  .counted = Counted::operations,
                  .in_int8 = InInt8::computed,
                  .build = dense_convolutions},
    OperatorClass{.name = "pointwise_conv",
                  .subject = "1x1 convolution",
                  .counted = Counted::operations,
                  .in_int8 = InInt8::computed,
                  .build = pointwise_convolutions},
    OperatorClass{.name = "depthwise_conv",
                  .subject = "depthwise 3x3 convolution",
                  .counted = Counted::operations,
                  .in_int8 = InInt8::computed,
                  .build = depthwise_convolutions},
    OperatorClass{.name = "fully_connected",
                  .subject = "fully connected layer",
                  .counted = Counted::operations,
                  .in_int8 = InInt8::computed,
                  .build = fully_connected},
    OperatorClass{.name = "max_pool",
                  .subject = "3x3 max pooling",
                  .counted = Counted::bytes,
                  .in_int8 = InInt8::moved,
                  .build = max_pool},
    OperatorClass{.name = "global_average_pool",
                  .subject = "global average pooling",
                  .counted = Counted::bytes,
                  .in_int8 = InInt8::computed,
                  .build = global_average_pool},
    OperatorClass{.name = "add",
                  .subject = "sum of two tensors",
                  .counted = Counted::bytes,
                  .in_int8 = InInt8::computed,
                  .build = add},
    OperatorClass{.name = "relu",
                  .subject = "ReLU",
                  .counted = Counted::bytes,
                  .in_int8 = InInt8::no,
                  .build = relu},
    OperatorClass{.name = "sigmoid",
                  .subject = "sigmoid",
                  .counted = Counted::bytes,
                  .in_int8 = InInt8::computed,
                  .build = sigmoid},
    OperatorClass{.name = "concat",
                  .subject = "concatenation of two tensors",
                  .counted = Counted::bytes,
                  .in_int8 = InInt8::moved,
                  .build = concat},
    OperatorClass{.name = "transpose",
                  .subject = "transposition NCHW to NHWC",
                  .counted = Counted::bytes,
                  .in_int8 = InInt8::moved,
                  .build = transpose},
    OperatorClass{.name = "softmax",
                  .subject = "softmax",
                  .counted = Counted::bytes,
                  .in_int8 = InInt8::no,
                  .build = softmax},
};

// Kernels are fixed: a bad choice on a busy machine would lower the bound of all others. Numbers of
// 8 bits take more channels to keep the arithmetic busy.
constexpr OperatorClass kFloatPeak = {.name = "peak",
                                      .subject = "peak of arithmetic",
                                      .kernels = engine::Choosing::fixed,
                                      .build = large_products<256, 28>};
constexpr OperatorClass kInt8Peak = {.name = "peak",
                                     .subject = "peak of arithmetic",
                                     .kernels = engine::Choosing::fixed,
                                     .build = large_products<1024, 16>};

Result<Graph> build(const OperatorClass& work) {
  NetBuilder net(std::string(work.name), kSeed);
  net.output(work.build(net), "y");
  return std::move(net).finish();
}

/// The same on tensors of 8 bits that stand for numbers from -1 to 1.
Graph on_bytes(Graph graph) {
  for (auto& tensor : graph.tensors) {
    if (tensor.dtype != graph::DType::f32) continue;
    tensor.dtype = graph::DType::u8;
    tensor.quantization = graph::Quantization{.scales = {1.0F / 128}, .zero_points = {128}};
  }
  return graph;
}

/// In the form that the engine executes, so that its steps are the graph's nodes.
Result<Graph> build(const OperatorClass& work, Precision precision) {
  auto graph = build(work);
  if (!graph) return graph;
  if (precision == Precision::int8) {
    if (work.in_int8 == InInt8::moved) return on_bytes(*std::move(graph));
    graph = engine::quantize_on(*graph, engine::random_samples(*graph, 1));
    if (!graph) return graph;
  }
  FLEETFIT_TRY(simplify(*graph));
  FLEETFIT_TRY(to_quantized_tensors(*graph));
  return graph;
}

bool is_conversion(const graph::Node& node) {
  return std::holds_alternative<graph::Requantize>(node.op) ||
         std::holds_alternative<graph::QuantizeLinear>(node.op) ||
         std::holds_alternative<graph::DequantizeLinear>(node.op);
}

double amount_of(const cost::NodeCost& cost, Counted counted) {
  const auto bytes = cost.input_bytes + cost.output_bytes + cost.weight_bytes;
  return static_cast<double>(counted == Counted::operations ? cost.flops : bytes);
}

}  // namespace

std::span<const OperatorClass> operator_classes() { return kClasses; }

const OperatorClass& peak_work(Precision precision) {
  return precision == Precision::int8 ? kInt8Peak : kFloatPeak;
}

Result<PreparedWork> PreparedWork::prepare(const OperatorClass& work, Precision precision,
                                           int threads) {
  FLEETFIT_ASSIGN(const auto graph, core::within(work.name, build(work, precision)));
  FLEETFIT_ASSIGN(const auto cost, core::within(work.name, cost::count_cost(graph)));
  std::vector<std::string> nodes;
  double amount = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (is_conversion(graph.nodes[i]) || !cost.nodes[i]) continue;
    nodes.push_back(graph.nodes[i].name);
    amount += amount_of(*cost.nodes[i], work.counted);
  }
  FLEETFIT_ASSIGN(
      auto program,
      core::within(work.name, engine::Program::prepare(
                                  graph, {.threads = threads, .choosing = work.kernels})));
  const auto inputs = random_inputs(graph, kSeed);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    FLEETFIT_TRY(program.set_input(i, inputs[i]));
  }
  return PreparedWork(std::move(program), std::move(nodes), amount);
}

bool PreparedWork::is_counted(const engine::StepTime& step) const {
  return std::ranges::any_of(nodes_, [&](const std::string& node) {
    return fmt::format("+{}+", step.name).find(fmt::format("+{}+", node)) != std::string::npos;
  });
}

Result<double> PreparedWork::sample() {
  program_.reset_times();
  FLEETFIT_TRY(program_.run_timed());
  double ms = 0;
  for (const auto& step : program_.step_times()) {
    if (is_counted(step)) ms += step.mean_ms;
  }
  if (ms <= 0) return fail(ErrorCode::internal, "no step of the program is of the class");
  return amount_ / ms / 1e6;
}

}  // namespace fleetfit::measure
