// Operators on quantized tensors, done on the real numbers that these stand for.
#include <utility>

#include "engine/own/quantized.h"
#include "engine/threads.h"
#include "fleetfit/graph/evaluate.h"

namespace fleetfit::engine::own {
namespace {

/// A tensor of the task that lies in scratch memory as floats while the inner kernel runs.
struct Widened {
  std::size_t index = 0;
  Scale scale;
  std::int64_t count = 0;
  std::size_t offset = 0;  ///< in scratch memory
};

/// The constant as floats, whatever its type and scales.
std::optional<graph::TensorData> real_constant(const Operand& operand) {
  const graph::Value stored{operand.dtype, operand.shape, *operand.constant, operand.quantization};
  const graph::Value* const pointer = &stored;
  const graph::Node node{.op = graph::Requantize{DType::f32}, .inputs = {0}, .outputs = {1}};
  const auto values = graph::evaluate(node, {&pointer, 1});
  if (!values || values->front().dtype != DType::f32) return std::nullopt;
  return values->front().data;
}

class OnReals final : public Kernel {
 public:
  /// The task on floats; `inner` is to be made for it. Nothing if an operand cannot be widened.
  static std::optional<std::pair<Task, std::unique_ptr<OnReals>>> prepare(const Task& task) {
    auto kernel = std::unique_ptr<OnReals>(new OnReals);
    Task real = task;
    for (std::size_t i = 0; i < task.inputs.size(); ++i) {
      Operand& input = real.inputs[i];
      if (!input.present || !input.quantization) continue;
      if (input.constant) {
        input.constant = real_constant(task.inputs[i]);
        if (!input.constant) return std::nullopt;
      } else if (is_quantized(input)) {
        kernel->inputs_.push_back(kernel->reserve(i, input));
      } else {
        return std::nullopt;
      }
      input.dtype = DType::f32;
      input.quantization.reset();
    }
    for (std::size_t i = 0; i < task.outputs.size(); ++i) {
      Operand& output = real.outputs[i];
      if (!output.present || !output.quantization) continue;
      if (!is_quantized(output)) return std::nullopt;
      kernel->outputs_.push_back(kernel->reserve(i, output));
      output.dtype = DType::f32;
      output.quantization.reset();
    }
    return std::pair(std::move(real), std::move(kernel));
  }

  void set_inner(KernelPtr inner) { inner_ = std::move(inner); }

  std::string name() const override { return inner_->name() + " on reals"; }
  std::size_t scratch_bytes() const override { return widened_bytes_ + inner_->scratch_bytes(); }
  std::size_t weight_bytes() const override { return inner_->weight_bytes(); }

  void bind(const Bindings& bindings) override {
    bindings_ = bindings;
    Bindings real = bindings;
    for (const Widened& input : inputs_) {
      real.inputs[input.index] = bindings.scratch + input.offset;
    }
    for (const Widened& output : outputs_) {
      real.outputs[output.index] = bindings.scratch + output.offset;
    }
    real.scratch = bindings.scratch + widened_bytes_;
    inner_->bind(real);
  }

  Status run() override {
    for (const Widened& input : inputs_) {
      const auto* from = reinterpret_cast<const std::uint8_t*>(bindings_.inputs[input.index]);
      float* to = reals(input);
      parallel(input.count, grain_of(1), [&](std::int64_t begin, std::int64_t end) {
        dequantize_row(input.scale, from + begin, to + begin, end - begin);
      });
    }
    if (auto status = inner_->run(); !status) return status;
    for (const Widened& output : outputs_) {
      auto* to = reinterpret_cast<std::uint8_t*>(bindings_.outputs[output.index]);
      const float* from = reals(output);
      parallel(output.count, grain_of(1), [&](std::int64_t begin, std::int64_t end) {
        quantize_row(output.scale, from + begin, to + begin, end - begin);
      });
    }
    return {};
  }

 private:
  OnReals() = default;

  Widened reserve(std::size_t index, const Operand& operand) {
    const std::int64_t count = graph::elements(operand.shape);
    const std::size_t offset = widened_bytes_;
    widened_bytes_ += aligned(static_cast<std::size_t>(count) * sizeof(float));
    return {index, scale_of(operand), count, offset};
  }

  float* reals(const Widened& tensor) const {
    return reinterpret_cast<float*>(bindings_.scratch + tensor.offset);
  }

  std::vector<Widened> inputs_;
  std::vector<Widened> outputs_;
  std::size_t widened_bytes_ = 0;
  KernelPtr inner_;
  Bindings bindings_;
};

}  // namespace

KernelPtr make_on_reals(const Task& task, KernelPtr (*make)(const Task&)) {
  auto prepared = OnReals::prepare(task);
  if (!prepared) return nullptr;
  auto& [real, kernel] = *prepared;
  KernelPtr inner = make(real);
  if (!inner) return nullptr;
  kernel->set_inner(std::move(inner));
  return std::move(kernel);
}

}  // namespace fleetfit::engine::own
