// An activation after any other kernel.
#include "engine/own/own.h"
#include "engine/own/rows.h"
#include "engine/threads.h"

namespace fleetfit::engine::own {
namespace {

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

}  // namespace

KernelPtr activated(KernelPtr kernel, const graph::Activation& activation, const Operand& output) {
  if (!kernel || !activation) return kernel;
  if (!is_real(output)) return nullptr;
  const auto count = static_cast<std::int64_t>(storage_bytes(output) / sizeof(float));
  return std::make_unique<ActivatedKernel>(std::move(kernel), activation, count);
}

}  // namespace fleetfit::engine::own
