#include <fmt/format.h>

#include "fleetfit/core/random.h"
#include "fleetfit/graph/evaluate.h"
#include "graph/evaluate/kernels.h"
#include "graph/operands.h"

namespace fleetfit::graph {
namespace {

Status check_inputs(const Graph& graph, std::span<const Value> inputs) {
  if (inputs.size() != graph.inputs.size()) {
    return misfit("{} inputs for a graph that has {}", inputs.size(), graph.inputs.size());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& tensor = graph.tensor(graph.inputs[i]);
    if (tensor.dtype != DType::unknown && tensor.dtype != inputs[i].dtype) {
      return misfit("input '{}' is to be {} and is {}", tensor.name, to_string(tensor.dtype),
                    to_string(inputs[i].dtype));
    }
    if (tensor.shape && *tensor.shape != inputs[i].shape) {
      return misfit("input '{}' is to be {} and is {}", tensor.name, to_string(*tensor.shape),
                    to_string(inputs[i].shape));
    }
  }
  return {};
}

/// The values at hand while a graph runs, each kept until its last reader is done.
class Running {
 public:
  Running(const Graph& graph, std::span<const Value> inputs)
      : graph_(graph), values_(graph.tensors.size()), readers_(graph.tensors.size(), 0) {
    for (const auto& node : graph.nodes) {
      for (const auto id : node.inputs) {
        if (id != kNoTensor) ++readers_[index(id)];
      }
    }
    for (const auto id : graph.outputs) ++readers_[index(id)];
    for (std::size_t t = 0; t < values_.size(); ++t) {
      const auto& tensor = graph.tensors[t];
      if (tensor.data && tensor.shape) {
        values_[t] = Value{tensor.dtype, *tensor.shape, *tensor.data, tensor.quantization};
      }
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      values_[index(graph.inputs[i])] = inputs[i];
      values_[index(graph.inputs[i])]->quantization = graph.tensor(graph.inputs[i]).quantization;
    }
  }

  Status run(const Node& node) {
    if (std::holds_alternative<Constant>(node.op)) return {};
    std::vector<const Value*> inputs;
    for (const auto id : node.inputs) {
      inputs.push_back(id == kNoTensor ? nullptr : &*values_[index(id)]);
    }
    std::vector<std::optional<Quantization>> quantizations;
    for (const auto id : node.outputs) {
      quantizations.push_back(id == kNoTensor ? std::nullopt : graph_.tensor(id).quantization);
    }
    FLEETFIT_ASSIGN(auto results, evaluate(node, inputs, quantizations));
    for (const auto id : node.inputs) release(id);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto id = node.outputs[i];
      if (id != kNoTensor && readers_[index(id)] > 0) values_[index(id)] = std::move(results[i]);
    }
    return {};
  }

  const Value& value(TensorId id) const { return *values_[index(id)]; }

 private:
  static std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }

  void release(TensorId id) {
    if (id != kNoTensor && --readers_[index(id)] == 0) values_[index(id)].reset();
  }

  const Graph& graph_;
  std::vector<std::optional<Value>> values_;
  std::vector<int> readers_;
};

Value random_value(const Tensor& tensor, std::uint64_t seed) {
  const Shape shape = tensor.shape.value_or(Shape{});
  std::vector<double> numbers(elements(shape));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = 2 * core::unit_interval(core::mix(seed, i)) - 1;
  }
  const auto type = size_of(tensor.dtype) == 0 ? DType::f32 : tensor.dtype;
  if (tensor.quantization && is_integer(type)) {
    const auto reals = interpreter::write(interpreter::Form{DType::f32, shape}, numbers);
    if (auto stored = interpreter::quantized(reals, type, *tensor.quantization)) return *stored;
  }
  // Both truths are to occur. Whole numbers become zero, which is a valid index.
  if (type == DType::boolean) {
    for (auto& number : numbers) number = number < 0 ? 0 : 1;
  }
  return interpreter::write(interpreter::Form{type, shape}, numbers);
}

}  // namespace

Result<std::vector<Value>> evaluate(const Graph& graph, std::span<const Value> inputs) {
  FLEETFIT_TRY(validate(graph));
  FLEETFIT_TRY(check_inputs(graph, inputs));
  Running running(graph, inputs);
  for (const auto& node : graph.nodes) {
    FLEETFIT_TRY(running.run(node));
  }
  std::vector<Value> results;
  for (const auto id : graph.outputs) results.push_back(running.value(id));
  return results;
}

std::vector<Value> random_inputs(const Graph& graph, std::uint64_t seed) {
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    inputs.push_back(random_value(graph.tensor(graph.inputs[i]), core::mix(seed, i)));
  }
  return inputs;
}

}  // namespace fleetfit::graph
