#include "engine/xnnpack/xnnpack.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "engine/libraries.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::engine::xnnpack {
namespace {

using graph::ActivationKind;
using graph::DType;

class OperatorsKernel final : public Kernel {
 public:
  struct Parts {
    std::string name;
    std::vector<Stage> stages;
    KernelPtr last;  ///< works on the output in place; may be null
    std::size_t scratch_bytes = 0;
    std::size_t weight_bytes = 0;
    int threads = 1;
  };

  explicit OperatorsKernel(Parts parts)
      : parts_(std::move(parts)), pool_{static_cast<std::size_t>(std::max(parts_.threads, 1))} {}

  std::string name() const override {
    return "xnnpack " + parts_.name + (parts_.last ? " + " + parts_.last->name() : "");
  }
  std::size_t scratch_bytes() const override {
    return std::max(parts_.scratch_bytes, parts_.last ? parts_.last->scratch_bytes() : 0);
  }
  std::size_t weight_bytes() const override { return parts_.weight_bytes; }

  void bind(const Bindings& bindings) override {
    bound_ = xnn_status_success;
    for (const Stage& stage : parts_.stages) {
      const auto status = stage.setup(stage.op.get(), bindings, pool());
      if (status != xnn_status_success) bound_ = status;
    }
    if (parts_.last) {
      parts_.last->bind({{bindings.outputs[0]}, {bindings.outputs[0]}, bindings.scratch});
    }
  }

  Status run() override {
    auto status = bound_;
    for (const Stage& stage : parts_.stages) {
      if (status != xnn_status_success) break;
      status = xnn_run_operator(stage.op.get(), pool());
    }
    if (status != xnn_status_success) {
      return fail(ErrorCode::internal,
                  fmt::format("XNNPACK gave up with status {}", static_cast<int>(status)));
    }
    return parts_.last ? parts_.last->run() : Status{};
  }

 private:
  pthreadpool_t pool() { return pool_is_ours_ ? &pool_ : nullptr; }

  Parts parts_;
  pthreadpool pool_;
  bool pool_is_ours_ = pool_is_ours();
  xnn_status bound_ = xnn_status_invalid_state;
};

Place constant_number(float value) {
  auto held = std::make_shared<AlignedMemory>(sizeof value);
  std::memcpy(held->data(), &value, sizeof value);
  return {.memory = Place::Memory::constant, .held = std::move(held)};
}

/// The elements and one number, or as many numbers.
template <class Setup>
auto on_pairs(Setup setup, const Place& a, std::pair<Place, std::size_t> b, const Place& to,
              std::size_t elements) {
  return [=](xnn_operator_t op, const Bindings& bindings, pthreadpool_t pool) {
    const std::array<std::size_t, 1> first{elements};
    const std::array<std::size_t, 1> second{b.second};
    return setup(op, 1, first.data(), 1, second.data(), a.as<const float>(bindings),
                 b.first.as<const float>(bindings), to.as<float>(bindings), pool);
  };
}

KernelPtr make_own_activation(const Task& task) {
  Task activation;
  activation.node.name = task.node.name;
  activation.node.op = graph::Activate{task.node.activation};
  activation.node.inputs = {0};
  activation.node.outputs = {1};
  activation.inputs = task.outputs;
  activation.outputs = task.outputs;
  activation.threads = task.threads;
  return make_own_kernel(activation);
}

const graph::OperatorTable<KernelEntry>& table() {
  static const graph::OperatorTable<KernelEntry> kTable{
      convolution_kernels(), elementwise_kernels(), movement_kernels(), pooling_kernels()};
  return kTable;
}

}  // namespace

std::byte* Place::address(const Bindings& bindings) const {
  switch (memory) {
    case Memory::input:
      return const_cast<std::byte*>(bindings.inputs[index]) + offset;  // only read
    case Memory::output:
      return bindings.outputs[index] + offset;
    case Memory::scratch:
      return bindings.scratch + offset;
    case Memory::constant:
      return held->data() + offset;
  }
  return nullptr;
}

Place place_of_input(const Task& task, std::size_t index) {
  const auto& constant = task.inputs[index].constant;
  if (!constant) return {Place::Memory::input, index};
  const auto bytes = constant->bytes();
  auto held = std::make_shared<AlignedMemory>(bytes.size());
  std::ranges::copy(bytes, held->data());
  return {.memory = Place::Memory::constant, .held = std::move(held)};
}

void KernelParts::add_activation(const graph::Activation& activation, const Place& from,
                                 const Place& to, std::size_t n) {
  const float alpha = activation.alpha;
  const float beta = activation.beta;
  const Bounds none;
  const auto multiply = [&](const Place& a, const Place& b, std::size_t count) {
    add(create(xnn_create_multiply_nd_f32, none.low, none.high, 0),
        on_pairs(xnn_setup_multiply_nd_f32, a, {b, count}, to, n));
  };
  switch (activation.kind) {
    case ActivationKind::none:
      return;
    case ActivationKind::relu:
    case ActivationKind::clip: {
      const auto bounds = bounds_of(activation);
      if (!bounds) return fail();
      return add_function<FLEETFIT_XNN(clamp_nc_f32)>(from, to, n, bounds->low, bounds->high);
    }
    case ActivationKind::leaky_relu:
      return add_function<FLEETFIT_XNN(leaky_relu_nc_f32)>(from, to, n, alpha);
    case ActivationKind::elu:
    case ActivationKind::selu:
      add_function<FLEETFIT_XNN(elu_nc_f32)>(from, to, n, alpha);
      if (activation.kind == ActivationKind::selu) multiply(to, constant_number(beta), 1);
      return;
    case ActivationKind::sigmoid:
      return add_function<FLEETFIT_XNN(sigmoid_nc_f32)>(from, to, n);
    case ActivationKind::hard_sigmoid:
      multiply(from, constant_number(alpha), 1);
      return add(create(xnn_create_add_nd_f32, 0.0F, 1.0F, 0),
                 on_pairs(xnn_setup_add_nd_f32, to, {constant_number(beta), 1}, to, n));
    case ActivationKind::hard_swish:
      return add_function<FLEETFIT_XNN(hardswish_nc_f32)>(from, to, n);
    case ActivationKind::silu: {
      const Place scratch{Place::Memory::scratch};
      reserve_scratch(n * sizeof(float));
      add_function<FLEETFIT_XNN(sigmoid_nc_f32)>(from, scratch, n);
      return multiply(from, scratch, n);
    }
    default:
      break;
  }
  const bool in_place = from.memory == Place::Memory::output && to.memory == from.memory;
  if (in_place && task_.outputs[0].dtype == DType::f32) last_ = make_own_activation(task_);
  if (!last_) fail();
}

KernelPtr KernelParts::kernel(Activation activation) && {
  if (activation == kNotActivated) {
    add_activation(task_.node.activation, place_of_output(), place_of_output(),
                   element_count(task_.outputs[0]));
  }
  if (failed_) return nullptr;
  return std::make_unique<OperatorsKernel>(
      OperatorsKernel::Parts{std::move(name_), std::move(stages_), std::move(last_), scratch_bytes_,
                             weight_bytes_, task_.threads});
}

std::optional<Bounds> bounds_of(const graph::Activation& activation) {
  if (!activation) return Bounds{};
  if (activation.kind == ActivationKind::relu) return Bounds{.low = 0};
  // The library wants room between them.
  if (activation.kind != ActivationKind::clip || !(activation.alpha < activation.beta))
    return std::nullopt;
  return Bounds{activation.alpha, activation.beta};
}

std::optional<Affine> affine(const Operand& operand) {
  const auto& q = operand.quantization;
  const bool bytes = operand.dtype == DType::i8 || operand.dtype == DType::u8;
  if (!bytes || !q || q->scales.size() != 1) return std::nullopt;
  return Affine{q->scales[0], q->zero_points[0]};
}

template <class T>
std::optional<StoredBounds<T>> stored_bounds(const graph::Activation& activation,
                                             const Affine& result) {
  const auto bounds = bounds_of(activation);
  if (!bounds) return std::nullopt;
  const auto stored = [&](float real) {
    const double number = std::nearbyint(double{real} / result.scale) + result.zero_point;
    return static_cast<T>(
        std::clamp<double>(number, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  };
  const StoredBounds<T> found{stored(bounds->low), stored(bounds->high)};
  if (found.low >= found.high) return std::nullopt;
  return found;
}
template std::optional<StoredBounds<std::int8_t>> stored_bounds(const graph::Activation&,
                                                                const Affine&);
template std::optional<StoredBounds<std::uint8_t>> stored_bounds(const graph::Activation&,
                                                                 const Affine&);

bool same_meaning(const Operand& a, const Operand& b) {
  return a.dtype == b.dtype && a.quantization == b.quantization;
}

std::size_t element_count(const Operand& operand) { return size(graph::elements(operand.shape)); }

std::optional<Image> image(const Operand& operand, graph::Layout layout) {
  const auto& shape = operand.shape;
  if (layout != graph::Layout::nhwc || (shape.size() != 3 && shape.size() != 4))
    return std::nullopt;
  const bool flat = shape.size() == 3;
  return Image{size(shape[0]), flat ? 1 : size(shape[1]), size(shape[shape.size() - 2]),
               size(shape.back())};
}

std::optional<Window2d> window2d(const graph::Window& window, const graph::Ints& pads_begin,
                                 const graph::Ints& pads_end) {
  const auto rank = window.kernel.size();
  if (rank != 1 && rank != 2) return std::nullopt;
  bool fits = true;
  const auto side = [&](const graph::Ints& values, std::uint32_t missing) {
    for (const auto value : values)
      fits = fits && value >= 0 && value <= std::numeric_limits<std::int32_t>::max();
    const auto last = static_cast<std::uint32_t>(values[rank - 1]);
    return Window2d::Side{rank == 1 ? missing : static_cast<std::uint32_t>(values[0]), last};
  };
  const Window2d result{side(window.kernel, 1), side(window.strides, 1), side(window.dilations, 1),
                        side(pads_begin, 0), side(pads_end, 0)};
  return fits ? std::optional(result) : std::nullopt;
}

}  // namespace fleetfit::engine::xnnpack

namespace fleetfit::engine {
namespace {

/// Whether the library can be used on this CPU at all.
bool is_ready() {
  static const bool ready = xnn_initialize(nullptr) == xnn_status_success;
  return ready;
}

/// What the library picks its kernels by.
std::string instruction_set() {
#if defined(__x86_64__)
  for (const auto& [name, has] :
       {std::pair{"avx512skx", __builtin_cpu_supports("avx512bw") != 0 &&
                                   __builtin_cpu_supports("avx512dq") != 0 &&
                                   __builtin_cpu_supports("avx512vl") != 0},
        std::pair{"avx512f", __builtin_cpu_supports("avx512f") != 0},
        std::pair{"avx2", __builtin_cpu_supports("avx2") != 0},
        std::pair{"fma3", __builtin_cpu_supports("fma") != 0},
        std::pair{"avx", __builtin_cpu_supports("avx") != 0},
        std::pair{"sse4.1", __builtin_cpu_supports("sse4.1") != 0}}) {
    if (has) return name;
  }
  return "sse2";
#elif defined(__aarch64__)
  return "neon";
#else
  return "scalar";
#endif
}

}  // namespace

KernelPtr make_xnnpack_kernel(const Task& task) {
  if (task.adds_last_input || task.outputs.empty() || !all_plain(task) || !is_ready()) {
    return nullptr;
  }
  const auto* entry = xnnpack::table().find(task.node.op);
  return entry != nullptr ? entry->make(task) : nullptr;
}

std::string xnnpack_identity() {
  // The library has no version; another one hardly ever has the same length.
  Dl_info library{};
  std::error_code error;
  std::uintmax_t bytes = 0;
  if (dladdr(reinterpret_cast<const void*>(&xnn_initialize), &library) != 0)
    bytes = std::filesystem::file_size(library.dli_fname, error);
  return fmt::format("xnnpack of {} bytes isa {}", error ? 0 : bytes, instruction_set());
}

}  // namespace fleetfit::engine
