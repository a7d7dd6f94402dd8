#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "engine/aligned_memory.h"
#include "engine/libraries.h"
#include "engine/threads.h"
#include "fleetfit/core/random.h"
#include "fleetfit/graph/evaluate.h"

/// One operator on one kernel, against the plain interpreter.
namespace fleetfit::engine {

using graph::DType;
using graph::Shape;

/// An operand of the operator under test.
struct Given {
  graph::Value value;
  bool constant = false;
  bool present = true;
};

inline std::vector<double> random_numbers(const Shape& shape, std::uint64_t seed, double low,
                                          double high) {
  core::Random random(seed);
  std::vector<double> numbers(static_cast<std::size_t>(graph::elements(shape)));
  for (auto& number : numbers) number = random.uniform(low, high);
  return numbers;
}

template <class T>
graph::TensorData stored_as(const std::vector<double>& numbers) {
  std::vector<T> stored;
  for (const double number : numbers) stored.push_back(static_cast<T>(number));
  return graph::TensorData::copy(stored);
}

inline graph::TensorData stored_as(DType type, const std::vector<double>& numbers) {
  switch (type) {
    case DType::i8:
      return stored_as<std::int8_t>(numbers);
    case DType::u8:
    case DType::boolean:
      return stored_as<std::uint8_t>(numbers);
    case DType::i16:
      return stored_as<std::int16_t>(numbers);
    case DType::i32:
      return stored_as<std::int32_t>(numbers);
    case DType::i64:
      return stored_as<std::int64_t>(numbers);
    case DType::f64:
      return stored_as<double>(numbers);
    default:
      return stored_as<float>(numbers);
  }
}

/// Numbers that show mistakes in every type: small, of both signs where there are any.
inline Given tensor(const Shape& shape, DType type = DType::f32, std::uint64_t seed = 1) {
  const double low = type == DType::u8 || type == DType::boolean ? 0 : -4;
  const double high = type == DType::boolean ? 2 : type == DType::u8 ? 200 : 4;
  const double reach = type == DType::i8 ? 25 : 1;
  return {
      {type, shape, stored_as(type, random_numbers(shape, seed, low * reach, high * reach)), {}}};
}

inline Given positive(const Shape& shape, std::uint64_t seed = 1) {
  return {{DType::f32, shape, stored_as<float>(random_numbers(shape, seed, 0.25, 4)), {}}};
}

inline graph::Quantization scale_of(float scale, std::int32_t zero_point) {
  return {.scales = {scale}, .zero_points = {zero_point}};
}

inline Given quantized(const Shape& shape, DType type, float scale, std::int32_t zero_point,
                       std::uint64_t seed = 1) {
  const double low = type == DType::u8 ? 0 : -128;
  Given given{{type, shape, stored_as(type, random_numbers(shape, seed, low, low + 255.99)), {}}};
  given.value.quantization = scale_of(scale, zero_point);
  return given;
}

inline Given constant(Given given) {
  given.constant = true;
  return given;
}

inline Given ints(const std::vector<std::int64_t>& values) {
  return {{DType::i64, {std::ssize(values)}, graph::TensorData::copy(values), {}}, true};
}

inline Given left_out() {
  return {.value = {DType::f32, {0}, graph::TensorData::own({}), {}}, .present = false};
}

/// An operator with its operands.
struct OneNode {
  graph::Operator op;
  std::vector<Given> inputs;
  int outputs = 1;
  graph::Activation activation = {};
  std::vector<std::optional<graph::Quantization>> quantizations = {};
  bool adds_last_input = false;

  graph::Node node() const {
    graph::Node node{.name = "tested", .op = op, .activation = activation};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      node.inputs.push_back(inputs[i].present ? static_cast<int>(i) : graph::kNoTensor);
    }
    for (int i = 0; i < outputs; ++i) node.outputs.push_back(static_cast<int>(inputs.size()) + i);
    return node;
  }

  Result<std::vector<graph::Value>> interpreted() const {
    std::vector<const graph::Value*> values;
    for (const Given& input : inputs) values.push_back(input.present ? &input.value : nullptr);
    auto results = graph::evaluate(node(), values, quantizations);
    if (results) {
      for (std::size_t i = 0; i < results->size() && i < quantizations.size(); ++i) {
        (*results)[i].quantization = quantizations[i];
      }
    }
    return results;
  }

  Task task(const std::vector<graph::Value>& results, int threads) const {
    Task task{.node = node(), .adds_last_input = adds_last_input, .threads = threads};
    for (const Given& input : inputs) {
      Operand operand{.present = input.present};
      if (input.present) {
        operand.dtype = input.value.dtype;
        operand.shape = input.value.shape;
        operand.quantization = input.value.quantization;
        if (input.constant) operand.constant = input.value.data;
      }
      task.inputs.push_back(operand);
    }
    for (int i = 0; i < outputs; ++i) {
      const auto& result = results[static_cast<std::size_t>(i)];
      task.outputs.push_back(
          {.dtype = result.dtype, .shape = result.shape, .quantization = result.quantization});
    }
    return task;
  }
};

/// Runs a kernel twice on fresh memory whose ends are guarded; the second run must not depend on
/// what the first left behind.
inline std::vector<graph::Value> run_kernel(Kernel& kernel, const Task& task,
                                            const std::vector<Given>& inputs) {
  constexpr std::size_t kGuard = 64;
  constexpr auto kMark = static_cast<std::byte>(0xA5);
  std::vector<AlignedMemory> held;
  Bindings bindings;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool bound = inputs[i].present && !inputs[i].constant;
    bindings.inputs.push_back(nullptr);
    if (!bound) continue;
    const auto bytes = inputs[i].value.data.bytes();
    held.emplace_back(bytes.size());
    std::ranges::copy(bytes, held.back().data());
    bindings.inputs.back() = held.back().data();
  }
  for (const Operand& output : task.outputs) {
    const std::size_t bytes = storage_bytes(output);
    held.emplace_back(bytes + kGuard);
    std::fill_n(held.back().data(), bytes + kGuard, kMark);
    bindings.outputs.push_back(held.back().data());
  }
  held.emplace_back(kernel.scratch_bytes() + kGuard);
  std::fill_n(held.back().data(), kernel.scratch_bytes() + kGuard, kMark);
  bindings.scratch = held.back().data();
  kernel.bind(bindings);
  for (int run = 0; run < 2; ++run) {
    const auto status = kernel.run();
    EXPECT_TRUE(status) << (status ? "" : status.error().message);
  }
  const auto untouched = [&](const std::byte* end) {
    return std::all_of(end, end + kGuard, [&](std::byte byte) { return byte == kMark; });
  };
  EXPECT_TRUE(untouched(bindings.scratch + kernel.scratch_bytes())) << "scratch overrun";
  std::vector<graph::Value> results;
  for (std::size_t i = 0; i < task.outputs.size(); ++i) {
    const Operand& output = task.outputs[i];
    const std::size_t bytes = storage_bytes(output);
    EXPECT_TRUE(untouched(bindings.outputs[i] + bytes)) << "output overrun";
    results.push_back({output.dtype, output.shape,
                       graph::TensorData::own({bindings.outputs[i], bindings.outputs[i] + bytes}),
                       output.quantization});
  }
  return results;
}

template <class T>
double largest_difference(const graph::Value& a, const graph::Value& b) {
  const auto x = a.data.as<T>();
  const auto y = b.data.as<T>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (x[i] != x[i] && y[i] != y[i])) continue;
    const double difference = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
    const double scale =
        std::is_floating_point_v<T> ? std::max(1.0, std::abs(static_cast<double>(x[i]))) : 1.0;
    worst = std::isnan(difference) ? 1e30 : std::max(worst, difference / scale);
  }
  return worst;
}

struct Tolerance {
  double relative = 1e-5;  ///< of floats, absolute below one
  double quanta = 1;       ///< of quantized numbers
};

inline void expect_same(const graph::Value& expected, const graph::Value& actual,
                        const Tolerance& tolerance) {
  ASSERT_EQ(expected.data.size_bytes(), actual.data.size_bytes());
  if (expected.dtype == DType::f32) {
    EXPECT_LE(largest_difference<float>(expected, actual), tolerance.relative);
  } else if (expected.quantization && expected.dtype == DType::i8) {
    EXPECT_LE(largest_difference<std::int8_t>(expected, actual), tolerance.quanta);
  } else if (expected.quantization && expected.dtype == DType::u8) {
    EXPECT_LE(largest_difference<std::uint8_t>(expected, actual), tolerance.quanta);
  } else {
    EXPECT_TRUE(expected.data == actual.data) << "bytes differ";
  }
}

/// Our kernel for the operator must exist and give what the interpreter gives, on one thread and on
/// two.
inline void expect_as_interpreted(const OneNode& one, const Tolerance& tolerance = {}) {
  const auto expected = one.interpreted();
  ASSERT_TRUE(expected) << expected.error().message;
  for (const int threads : {1, 2}) {
    const Task task = one.task(*expected, threads);
    const KernelPtr kernel = make_own_kernel(task);
    ASSERT_NE(kernel, nullptr) << "no kernel for " << graph::describe(task.node);
    use_threads(threads);
    const auto actual = run_kernel(*kernel, task, one.inputs);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      SCOPED_TRACE(graph::describe(task.node) + " output " + std::to_string(i) + " on " +
                   std::to_string(threads) + " threads by " + kernel->name());
      expect_same((*expected)[i], actual[i], tolerance);
    }
  }
}

/// Every activation with the parameters that it needs.
inline std::vector<graph::Activation> activations() {
  using Kind = graph::ActivationKind;
  return {graph::kRelu,      graph::kRelu6,    {Kind::clip, -1, 2}, {Kind::leaky_relu, 0.1F},
          {Kind::elu, 0.7F}, graph::kSigmoid,  graph::kHardSigmoid, graph::kTanh,
          graph::kHardSwish, graph::kSilu,     graph::kGelu,        {Kind::gelu_tanh},
          {Kind::softplus},  {Kind::softsign}, graph::kSelu,        {Kind::mish}};
}

}  // namespace fleetfit::engine
