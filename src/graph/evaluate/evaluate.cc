#include "fleetfit/graph/evaluate.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/core/random.h"
#include "graph/evaluate/kernels.h"
#include "graph/infer_node.h"
#include "graph/is_one_of.h"
#include "graph/operands.h"
#include "graph/operators/traits.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;

// Computing takes up to eight bytes for each element of operands and results, so that this keeps
// each of them within 1 GB.
constexpr std::int64_t kMostElements = std::int64_t{1} << 27;

bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

/// Whether the elements, and the indices along each dimension, can be held. An extent of zero does
/// not make up for a huge one beside it.
bool is_small(const Shape& shape) {
  std::int64_t bound = 1;
  for (const auto extent : shape) {
    if (extent > kMostElements / bound) return false;
    bound *= std::max<std::int64_t>(extent, 1);
  }
  return true;
}

Status check_operand(const Value& value) {
  FLEETFIT_ASSIGN(const auto count, element_count(value.shape));
  if (count == 0 && !is_small(value.shape)) {
    return misfit("nothing is computed on {}", to_string(value.shape));
  }
  if (size_of(value.dtype) == 0) {
    return fail(ErrorCode::unsupported,
                fmt::format("nothing computes on elements of type {}", to_string(value.dtype)));
  }
  if (value.data.size_bytes() != static_cast<std::size_t>(count) * size_of(value.dtype)) {
    return misfit("{} bytes for {} elements of {}", value.data.size_bytes(), count,
                  to_string(value.dtype));
  }
  return {};
}

Status check_operands(const Node& node, std::span<const Value* const> inputs) {
  FLEETFIT_TRY(check_arity(node));
  if (inputs.size() != node.inputs.size()) return misfit("{} operands", inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if ((inputs[i] == nullptr) != (node.inputs[i] == kNoTensor)) {
      return misfit("operand {} is missing or not wanted", i);
    }
    if (inputs[i] == nullptr) continue;
    FLEETFIT_TRY(check_operand(*inputs[i]));
  }
  return {};
}

/// Types and shapes of all results.
Result<std::vector<Form>> infer_forms(const Node& node, std::span<const Value* const> inputs) {
  std::vector<Operand> operands;
  for (const auto* value : inputs) {
    operands.push_back(value == nullptr ? Operand{}
                                        : Operand{true, value->dtype, &value->shape, &value->data});
  }
  FLEETFIT_ASSIGN(const auto outcomes, infer_node(node, operands));
  std::vector<Form> forms;
  for (const auto& outcome : outcomes) {
    if (!outcome.shape || size_of(outcome.dtype) == 0) {
      return fail(ErrorCode::unsupported, "type or shape of the result cannot be told");
    }
    if (!is_small(*outcome.shape)) {
      return misfit("a result of {} is too large", to_string(*outcome.shape));
    }
    forms.push_back({outcome.dtype, *outcome.shape});
  }
  return forms;
}

/// Whether results may be copies of stored numbers: nothing is computed, and all the numbers mean
/// the same.
bool keeps_stored(const Node& node, std::span<const Value* const> inputs,
                  std::span<const std::optional<Quantization>> outputs) {
  if (is_one_of<QuantizeLinear, DequantizeLinear, ShapeOf>(node.op)) return true;
  if (!traits(node.op).only_moves || node.activation) return false;
  const auto& common = inputs[0]->quantization;
  if (common && common->axis) return false;
  const auto fits = [&](const std::optional<Quantization>& q) { return !q || q == common; };
  // Only joins take several tensors; what else is there are indices and shapes, never quantized.
  const bool joins = traits(node.op).data_inputs == DataInputs::joined;
  return std::all_of(outputs.begin(), outputs.end(), fits) &&
         std::all_of(inputs.begin(), inputs.end(), [&](const Value* value) {
           return value == nullptr ||
                  (joins ? value->quantization == common : fits(value->quantization));
         });
}

/// Operands in the types that kernels compute in, and results to match.
struct Plain {
  std::vector<Value> held;
  std::vector<const Value*> inputs;
  std::vector<Form> results;
};

Result<Value> widened(const Value& value) {
  if (value.quantization) return dequantized(value);
  return is_half(value.dtype) ? converted(value, DType::f32) : value;
}

/// Results of a quantized type, or of half precision, are computed in float32.
std::vector<Form> widened(const Node& node, std::vector<Form> forms,
                          std::span<const Value* const> inputs) {
  if (is_one_of<Cast>(node.op)) return forms;
  for (auto& form : forms) {
    const bool stands_for_reals = std::any_of(inputs.begin(), inputs.end(), [&](const Value* v) {
      return v != nullptr && v->quantization && v->dtype == form.dtype;
    });
    if (is_half(form.dtype) || stands_for_reals) form.dtype = DType::f32;
  }
  return forms;
}

Result<Plain> plain(const Node& node, std::span<const Value* const> inputs,
                    const std::vector<Form>& forms) {
  Plain p;
  p.held.reserve(inputs.size());
  for (const auto* value : inputs) {
    if (value == nullptr) {
      p.inputs.push_back(nullptr);
      continue;
    }
    FLEETFIT_ASSIGN(auto wide, widened(*value));
    p.held.push_back(std::move(wide));
    p.inputs.push_back(&p.held.back());
  }
  p.results = widened(node, forms, inputs);
  return p;
}

bool gives_nothing(const Call& call) {
  return std::all_of(call.results.begin(), call.results.end(),
                     [](const Form& form) { return elements(form.shape) == 0; });
}

/// Results without elements. Kernels need not be asked, and never see the absurd extents that an
/// extent of zero can hide.
std::vector<Value> nothing(const Call& call) {
  std::vector<Value> values;
  for (const auto& form : call.results) {
    values.push_back(write(form, std::vector<double>{}));
  }
  return values;
}

Values compute(const Node& node, const Call& call) {
  if (gives_nothing(call)) return nothing(call);
  const auto run = traits(node.op).run;
  if (run == nullptr) {
    return fail(ErrorCode::unsupported, fmt::format("a {} is not computed", type_name(node.op)));
  }
  auto values = run(node.op, call);
  if (!values) return values;
  for (std::size_t i = 0; i < values->size(); ++i) {
    const auto& value = (*values)[i];
    if (value.data.size_bytes() !=
        static_cast<std::size_t>(elements(call.results[i].shape)) * size_of(value.dtype)) {
      return fail(ErrorCode::internal, fmt::format("result {} is not of the inferred shape {}", i,
                                                   to_string(call.results[i].shape)));
    }
  }
  if (!values->empty()) values->front() = activate(values->front(), node.activation);
  return values;
}

/// A computed result in the type and with the quantization that it is to have.
Result<Value> finished(const Value& value, DType type,
                       const std::optional<Quantization>& quantization) {
  if (quantization && is_integer(type)) return quantized(value, type, *quantization);
  if (value.dtype == type || (is_half(type) && value.dtype == DType::f32)) {
    return converted(value, type);
  }
  return fail(ErrorCode::unsupported,
              fmt::format("a result of type {} needs a quantization", to_string(type)));
}

Values evaluate_stored(const Node& node, std::span<const Value* const> inputs,
                       std::span<const std::optional<Quantization>> outputs,
                       std::vector<Form> forms) {
  auto values = compute(node, {inputs, std::move(forms)});
  if (!values) return values;
  for (std::size_t i = 0; i < values->size() && i < outputs.size(); ++i) {
    if (outputs[i]) (*values)[i].quantization = outputs[i];
  }
  return values;
}

Values evaluate_plain(const Node& node, std::span<const Value* const> inputs,
                      std::span<const std::optional<Quantization>> outputs,
                      const std::vector<Form>& forms) {
  FLEETFIT_ASSIGN(auto p, plain(node, inputs, forms));
  auto values = compute(node, {p.inputs, std::move(p.results)});
  if (!values) return values;
  for (std::size_t i = 0; i < values->size(); ++i) {
    FLEETFIT_ASSIGN(auto result, finished((*values)[i], forms[i].dtype,
                                          i < outputs.size() ? outputs[i] : std::nullopt));
    (*values)[i] = std::move(result);
  }
  return values;
}

Values evaluate_checked(const Node& node, std::span<const Value* const> inputs,
                        std::span<const std::optional<Quantization>> outputs) {
  if (const auto* unknown = std::get_if<Unknown>(&node.op)) {
    return fail(ErrorCode::unsupported, unknown->reason);
  }
  FLEETFIT_TRY(check_operands(node, inputs));
  FLEETFIT_ASSIGN(auto forms, infer_forms(node, inputs));
  if (keeps_stored(node, inputs, outputs)) {
    return evaluate_stored(node, inputs, outputs, std::move(forms));
  }
  return evaluate_plain(node, inputs, outputs, forms);
}

}  // namespace

Result<std::vector<Value>> evaluate(const Node& node, std::span<const Value* const> inputs,
                                    std::span<const std::optional<Quantization>> outputs) {
  auto values = evaluate_checked(node, inputs, outputs);
  if (!values) return core::within(describe(node), values.error());
  return values;
}

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
