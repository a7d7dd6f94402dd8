#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/aligned_memory.h"
#include "engine/kernel.h"
#include "engine/threads.h"
#include "fleetfit/graph/evaluate.h"
#include "tests/engine/compare.h"

namespace fleetfit::engine {

/// One operator with its operands: what a kernel is held against the interpreter on.
struct Trial {
  struct Input {
    std::optional<graph::Value> value;  ///< absent: left out
    bool constant = false;
  };
  graph::Operator op;
  std::vector<Input> inputs;
  graph::Activation activation = {};
  std::vector<std::optional<graph::Quantization>> results = {std::nullopt};  ///< one per output
  int threads = 1;
};

inline graph::Node node_of(const Trial& trial) {
  graph::Node node{.name = "it", .op = trial.op, .activation = trial.activation};
  graph::TensorId next = 0;
  for (const auto& input : trial.inputs)
    node.inputs.push_back(input.value ? next++ : graph::kNoTensor);
  for (std::size_t i = 0; i < trial.results.size(); ++i) node.outputs.push_back(next++);
  return node;
}

/// What the interpreter makes of it.
inline std::vector<graph::Value> expected_of(const Trial& trial) {
  std::vector<const graph::Value*> values;
  for (const auto& input : trial.inputs) values.push_back(input.value ? &*input.value : nullptr);
  auto result = graph::evaluate(node_of(trial), values, trial.results);
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : std::vector<graph::Value>{};
}

inline Task task_of(const Trial& trial, const std::vector<graph::Value>& expected) {
  Task task;
  task.node = node_of(trial);
  task.threads = trial.threads;
  for (const auto& input : trial.inputs) {
    Operand operand;
    operand.present = input.value.has_value();
    if (input.value) {
      operand.dtype = input.value->dtype;
      operand.shape = input.value->shape;
      operand.quantization = input.value->quantization;
      if (input.constant) operand.constant = input.value->data;
    }
    task.inputs.push_back(operand);
  }
  for (const auto& output : expected) {
    Operand operand;
    operand.dtype = output.dtype;
    operand.shape = output.shape;
    operand.quantization = output.quantization;
    task.outputs.push_back(operand);
  }
  return task;
}

/// Runs a kernel on the operands in memory of its own, whose results start as garbage.
inline std::vector<graph::Value> run_kernel(Kernel& kernel, const Trial& trial, const Task& task) {
  std::vector<AlignedMemory> memory;
  memory.reserve(task.inputs.size() + task.outputs.size());
  AlignedMemory scratch(kernel.scratch_bytes());
  Bindings bindings{.scratch = scratch.data()};
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    const Operand& operand = task.inputs[i];
    const bool bound = operand.present && !operand.constant;
    if (bound) {
      memory.emplace_back(storage_bytes(operand));
      trial.inputs[i].value->data.copy_to({memory.back().data(), memory.back().size()});
    }
    bindings.inputs.push_back(bound ? memory.back().data() : nullptr);
  }
  for (const Operand& operand : task.outputs) {
    memory.emplace_back(storage_bytes(operand));
    constexpr std::byte kGarbage{0xA5};
    std::fill_n(memory.back().data(), memory.back().size(), kGarbage);
    bindings.outputs.push_back(memory.back().data());
  }
  use_threads(task.threads);
  kernel.bind(bindings);
  const auto status = kernel.run();
  EXPECT_TRUE(status) << status.error().message;
  std::vector<graph::Value> results;
  for (std::size_t i = 0; i < task.outputs.size(); ++i) {
    const auto* bytes = bindings.outputs[i];
    const Operand& operand = task.outputs[i];
    results.push_back({operand.dtype, operand.shape,
                       graph::TensorData::own({bytes, bytes + storage_bytes(operand)}),
                       operand.quantization});
  }
  return results;
}

/// The largest difference of stored bytes.
inline int stored_difference(const graph::Value& expected, const graph::Value& actual) {
  const auto worst = [&]<class T>(T) {
    const auto a = expected.data.as<T>();
    const auto b = actual.data.as<T>();
    int difference = a.size() == b.size() ? 0 : 1000;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      difference = std::max(difference, std::abs(int{a[i]} - int{b[i]}));
    return difference;
  };
  return expected.dtype == graph::DType::u8 ? worst(std::uint8_t{}) : worst(std::int8_t{});
}

/// A result that is the same number everywhere would be right by accident.
inline bool is_varied(const graph::Value& value) {
  const auto bytes = value.data.bytes();
  const std::set<std::byte> different(bytes.begin(), bytes.end());
  return bytes.size() < 16 || different.size() > 3;
}

/// Holds what a factory makes against the interpreter, with one and two threads. `error` is the
/// relative difference that floats may have; bytes may differ by one.
template <class Make>
void expect_same(Make make, Trial trial, double error = 1e-5) {
  const auto expected = expected_of(trial);
  ASSERT_EQ(expected.size(), trial.results.size());
  for (const int threads : {1, 2}) {
    trial.threads = threads;
    const Task task = task_of(trial, expected);
    const auto kernel = make(task);
    ASSERT_TRUE(kernel);
    const auto actual = run_kernel(*kernel, trial, task);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(is_varied(expected[i]));
      if (expected[i].dtype == graph::DType::f32) {
        EXPECT_LT(relative_difference(expected[i], actual[i]), error) << kernel->name();
      } else {
        EXPECT_LE(stored_difference(expected[i], actual[i]), 1) << kernel->name();
      }
    }
  }
}

}  // namespace fleetfit::engine
