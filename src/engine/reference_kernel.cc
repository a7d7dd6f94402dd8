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

KernelPtr make_reference_kernel(const Task& task) {
  const auto is_plain = [](const Operand& operand) { return operand.format == Format::plain; };
  if (task.adds_last_input || is_joined_shuffle(task) ||
      !std::ranges::all_of(task.inputs, is_plain) || !std::ranges::all_of(task.outputs, is_plain)) {
    return nullptr;
  }
  return std::make_unique<ReferenceKernel>(task);
}

}  // namespace fleetfit::engine
