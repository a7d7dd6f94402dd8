// Kernels around other kernels.
#include <utility>

#include "engine/own/own.h"
#include "fleetfit/graph/evaluate.h"

namespace fleetfit::engine::own {
namespace {

/// An activation after any other kernel.
class ActivatedKernel final : public Kernel {
 public:
  ActivatedKernel(KernelPtr kernel, const graph::Activation& activation, std::int64_t count)
      : kernel_(std::move(kernel)), activation_(activation), count_(count) {}

  std::string name() const override { return kernel_->name() + ", activate"; }
  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  std::size_t weight_bytes() const override { return kernel_->weight_bytes(); }

  std::optional<std::size_t> output_shares_input() const override {
    return kernel_->output_shares_input();
  }

  void bind(const Bindings& bindings) override {
    kernel_->bind(bindings);
    out_ = reinterpret_cast<float*>(bindings.outputs[0]);
  }

  Status run() override {
    if (auto status = kernel_->run(); !status) return status;
    parallel(count_, grain_of(4), [&](std::int64_t begin, std::int64_t end) {
      activate_row(activation_, out_ + begin, out_ + begin, end - begin);
    });
    return {};
  }

 private:
  KernelPtr kernel_;
  graph::Activation activation_;
  std::int64_t count_;
  float* out_ = nullptr;
};

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

/// An operator on quantized tensors, done on the real numbers that these stand for.
class OnReals final : public Kernel {
 public:
  /// `inner` takes the widened tensors as floats.
  OnReals(KernelPtr inner, std::vector<Widened> inputs, std::vector<Widened> outputs,
          std::size_t widened_bytes)
      : inner_(std::move(inner)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        widened_bytes_(widened_bytes) {}

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
  float* reals(const Widened& tensor) const {
    return reinterpret_cast<float*>(bindings_.scratch + tensor.offset);
  }

  KernelPtr inner_;
  std::vector<Widened> inputs_;
  std::vector<Widened> outputs_;
  std::size_t widened_bytes_;
  Bindings bindings_;
};

}  // namespace

KernelPtr make_on_reals(const Task& task, MakeKernel make) {
  Task real = task;
  std::size_t widened_bytes = 0;
  // Lists the operands that lie as floats in scratch memory. False if one cannot.
  const auto widen = [&](std::vector<Operand>& operands, std::vector<Widened>& widened) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      Operand& operand = operands[i];
      if (!operand.present || !operand.quantization) continue;
      if (operand.constant) {
        operand.constant = real_constant(operand);
        if (!operand.constant) return false;
      } else {
        if (!is_quantized(operand)) return false;
        const std::int64_t count = graph::elements(operand.shape);
        widened.push_back({i, scale_of(operand), count, widened_bytes});
        widened_bytes += bytes_of_floats(count);
      }
      operand.dtype = DType::f32;
      operand.quantization.reset();
    }
    return true;
  };
  std::vector<Widened> inputs;
  std::vector<Widened> outputs;
  if (!widen(real.inputs, inputs) || !widen(real.outputs, outputs)) return nullptr;
  KernelPtr inner = make(real);
  if (!inner) return nullptr;
  return std::make_unique<OnReals>(std::move(inner), std::move(inputs), std::move(outputs),
                                   widened_bytes);
}

KernelPtr activated(KernelPtr kernel, const graph::Activation& activation, const Operand& output) {
  if (!kernel || !activation) return kernel;
  if (!is_real(output)) return nullptr;
  const auto count = static_cast<std::int64_t>(storage_bytes(output) / sizeof(float));
  return std::make_unique<ActivatedKernel>(std::move(kernel), activation, count);
}

}  // namespace fleetfit::engine::own
