#include "engine/kernel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/libraries.h"
#include "fleetfit/graph/evaluate.h"

namespace fleetfit::engine {
namespace {

using graph::TensorData;
using graph::Value;

class ReferenceKernel final : public Kernel {
 public:
  explicit ReferenceKernel(Task task) : task_(std::move(task)) {
    for (const Operand& output : task_.outputs) quantizations_.push_back(output.quantization);
  }

  std::string name() const override { return "reference"; }

  void bind(const Bindings& bindings) override {
    bindings_ = bindings;
    values_.clear();
    for (std::size_t i = 0; i < task_.inputs.size(); ++i) {
      const Operand& input = task_.inputs[i];
      if (input.present) values_.push_back(as_value(input, bindings.inputs[i]));
    }
    pointers_.clear();
    std::size_t next = 0;
    for (const Operand& input : task_.inputs) {
      pointers_.push_back(input.present ? &values_[next++] : nullptr);
    }
  }

  Status run() override {
    FLEETFIT_ASSIGN(auto results, evaluate(task_.node, pointers_, quantizations_));
    for (std::size_t i = 0; i < task_.outputs.size() && i < results.size(); ++i) {
      const auto bytes = results[i].data.bytes();
      if (bytes.size() != storage_bytes(task_.outputs[i])) {
        return fail(ErrorCode::internal, graph::describe(task_.node) + " gave an unexpected shape");
      }
      std::ranges::copy(bytes, bindings_.outputs[i]);
    }
    return {};
  }

 private:
  static Value as_value(const Operand& operand, const std::byte* memory) {
    const auto data = operand.constant
                          ? *operand.constant
                          : TensorData::view({memory, storage_bytes(operand)}, nullptr);
    return {operand.dtype, operand.shape, data, operand.quantization};
  }

  Task task_;
  std::vector<std::optional<graph::Quantization>> quantizations_;
  Bindings bindings_;
  std::vector<Value> values_;
  std::vector<const Value*> pointers_;
};

}  // namespace

std::size_t storage_bytes(const Operand& operand) {
  auto shape = operand.shape;
  constexpr std::int64_t kBlock = 16;
  if (operand.format == Format::blocked) shape[1] = (shape[1] + kBlock - 1) / kBlock * kBlock;
  return static_cast<std::size_t>(graph::elements(shape)) * graph::size_of(operand.dtype);
}

bool is_joined_shuffle(const Task& task) {
  return std::holds_alternative<graph::ChannelShuffle>(task.node.op) &&
         task.inputs.size() + task.outputs.size() > 2;
}

bool has_input(const Task& task, std::size_t i) {
  return i < task.inputs.size() && task.inputs[i].present;
}

bool all_plain(const Task& task) {
  const auto is_plain = [](const Operand& operand) {
    return !operand.present ||
           (operand.format == Format::plain && graph::elements(operand.shape) > 0);
  };
  return std::ranges::all_of(task.inputs, is_plain) && std::ranges::all_of(task.outputs, is_plain);
}

bool is_real(const Operand& operand) {
  return operand.present && operand.dtype == graph::DType::f32 && !operand.quantization;
}

bool is_quantized(const Operand& operand) {
  return (operand.dtype == graph::DType::i8 || operand.dtype == graph::DType::u8) &&
         operand.quantization && operand.quantization->scales.size() == 1 &&
         operand.quantization->zero_points.size() == 1;
}

bool all_real(const Task& task) {
  const auto fits = [](const Operand& operand) { return !operand.present || is_real(operand); };
  return std::ranges::all_of(task.inputs, fits) && std::ranges::all_of(task.outputs, fits);
}

std::optional<graph::Ints> constant_ints(const Operand& operand) {
  if (!operand.present || !operand.constant) return std::nullopt;
  if (operand.dtype == graph::DType::i64) {
    const auto values = operand.constant->as<std::int64_t>();
    return graph::Ints(values.begin(), values.end());
  }
  if (operand.dtype != graph::DType::i32) return std::nullopt;
  const auto values = operand.constant->as<std::int32_t>();
  return graph::Ints(values.begin(), values.end());
}

std::optional<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank) {
  const auto extent = static_cast<std::int64_t>(rank);
  if (axis < -extent || axis >= extent) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + extent : axis);
}

KernelPtr make_reference_kernel(const Task& task) {
  const auto is_plain = [](const Operand& operand) { return operand.format == Format::plain; };
  if (task.adds_last_input || is_joined_shuffle(task) ||
      !std::ranges::all_of(task.inputs, is_plain) || !std::ranges::all_of(task.outputs, is_plain)) {
    return nullptr;
  }
  return std::make_unique<ReferenceKernel>(task);
}

}  // namespace fleetfit::engine
