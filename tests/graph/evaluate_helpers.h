#pragma once

#include <utility>
#include <vector>

#include "fleetfit/graph/evaluate.h"

namespace fleetfit::graph {

template <class T>
Value value_of(DType dtype, Shape shape, const std::vector<T>& numbers) {
  return Value{dtype, std::move(shape), TensorData::copy(numbers), {}};
}

inline Value floats(Shape shape, const std::vector<float>& numbers) {
  return value_of(DType::f32, std::move(shape), numbers);
}

inline Value ints(Shape shape, const Ints& numbers) {
  return value_of(DType::i64, std::move(shape), numbers);
}

inline Value int_list(const Ints& numbers) {
  return ints({static_cast<std::int64_t>(numbers.size())}, numbers);
}

/// 0, 1, 2, … in float32.
inline Value counting(Shape shape) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < elements(shape); ++i) numbers.push_back(static_cast<float>(i));
  return floats(std::move(shape), numbers);
}

/// Uniform in [-1, 1), from the seed alone.
inline Value random_floats(Shape shape, std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(elements(shape));
  return Value{DType::f32,
               std::move(shape),
               TensorData::generate({.count = count, .spread = 1, .seed = seed}),
               {}};
}

inline Value with_quantization(Value value, float scale, std::int32_t zero_point) {
  value.quantization = Quantization{{scale}, {zero_point}, std::nullopt};
  return value;
}

template <class T>
std::vector<T> numbers_of(const Value& value) {
  const auto all = value.data.as<T>();
  return {all.begin(), all.end()};
}

/// How to run an operator on its own.
struct RunOptions {
  int outputs = 1;
  Activation activation;
  std::vector<std::optional<Quantization>> quantizations;
};

inline Result<std::vector<Value>> run_operator(Operator op, const std::vector<Value>& inputs,
                                               const RunOptions& options = {}) {
  Node node{.name = "it", .op = std::move(op), .activation = options.activation};
  std::vector<const Value*> operands;
  for (const auto& input : inputs) {
    node.inputs.push_back(static_cast<TensorId>(operands.size()));
    operands.push_back(&input);
  }
  for (int i = 0; i < options.outputs; ++i) {
    node.outputs.push_back(static_cast<TensorId>(operands.size()) + i);
  }
  return evaluate(node, operands, options.quantizations);
}

/// The first result, which must be there.
inline Value result_of(Operator op, const std::vector<Value>& inputs,
                       const RunOptions& options = {}) {
  return run_operator(std::move(op), inputs, options).value().front();
}

}  // namespace fleetfit::graph
