#include "engine/onednn/onednn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/libraries.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fleetfit::engine::onednn {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using graph::ActivationKind;
using graph::DType;

/// Some virtual machines show AMX and hide the leaf of CPUID that has its tile sizes; oneDNN's
/// kernels then die.
bool hides_tile_sizes() {
#if defined(__x86_64__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kTileLeaf = 0x1D;
  return __get_cpuid_max(0, nullptr) < kTileLeaf ||
         __get_cpuid_count(kTileLeaf, 1, &a, &b, &c, &d) == 0 || a == 0;
#else
  return false;
#endif
}

dnnl::engine open_cpu() {
  if (hides_tile_sizes()) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_vnni);
  return {dnnl::engine::kind::cpu, 0};
}

memory::format_tag image_tag(std::size_t rank, graph::Layout layout, Format format) {
  using Tag = memory::format_tag;
  const bool last = layout == graph::Layout::nhwc;
  if (format == Format::blocked) return rank == 4 ? Tag::nChw16c : Tag::undef;
  switch (rank) {
    case 3:
      return last ? Tag::nwc : Tag::ncw;
    case 4:
      return last ? Tag::nhwc : Tag::nchw;
    case 5:
      return last ? Tag::ndhwc : Tag::ncdhw;
    default:
      return Tag::undef;
  }
}

memory::dims channels_first(const graph::Shape& shape, graph::Layout layout) {
  memory::dims dims(shape.begin(), shape.end());
  if (layout == graph::Layout::nhwc) std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  return dims;
}

}  // namespace

const dnnl::engine& cpu() {
  static const dnnl::engine kEngine = open_cpu();
  return kEngine;
}

std::optional<memory::data_type> data_type(DType type) {
  switch (type) {
    case DType::f32:
      return memory::data_type::f32;
    case DType::i32:
      return memory::data_type::s32;
    case DType::i8:
      return memory::data_type::s8;
    case DType::u8:
      return memory::data_type::u8;
    default:
      return std::nullopt;
  }
}

memory::desc plain_desc(const Operand& operand) {
  memory::dims dims(operand.shape.begin(), operand.shape.end());
  if (dims.empty()) dims = {1};
  memory::dims strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return {dims, data_type(operand.dtype).value(), strides};
}

memory::desc image_desc(const Operand& operand, graph::Layout layout) {
  return {channels_first(operand.shape, layout), data_type(operand.dtype).value(),
          image_tag(operand.shape.size(), layout, operand.format)};
}

bool append_activation(dnnl::post_ops& post_ops, const graph::Activation& activation, float unit) {
  const auto append = [&](algorithm kind, float alpha = 0, float beta = 0, float scale = 1) {
    post_ops.append_eltwise(scale, kind, alpha, beta);
    return true;
  };
  const float alpha = activation.alpha;
  const float beta = activation.beta;
  switch (activation.kind) {
    case ActivationKind::none:
      return true;
    case ActivationKind::relu:
      return append(algorithm::eltwise_relu);
    case ActivationKind::clip:
      return append(algorithm::eltwise_clip, alpha / unit, beta / unit);
    case ActivationKind::leaky_relu:
      return append(algorithm::eltwise_relu, alpha);
    case ActivationKind::elu:
      return append(algorithm::eltwise_elu, alpha);
    case ActivationKind::sigmoid:
      return append(algorithm::eltwise_logistic);
    case ActivationKind::hard_sigmoid:
      return append(algorithm::eltwise_linear, alpha, beta / unit) &&
             append(algorithm::eltwise_clip, 0, 1 / unit);
    case ActivationKind::tanh:
      return append(algorithm::eltwise_tanh);
    case ActivationKind::hard_swish:
      return append(algorithm::eltwise_hardswish);
    case ActivationKind::silu:
      return append(algorithm::eltwise_swish, 1);
    case ActivationKind::gelu:
      return append(algorithm::eltwise_gelu_erf);
    case ActivationKind::gelu_tanh:
      return append(algorithm::eltwise_gelu_tanh);
    case ActivationKind::softplus:
      return append(algorithm::eltwise_soft_relu);
    case ActivationKind::selu:
      return append(algorithm::eltwise_elu, alpha, 0, beta);
    case ActivationKind::mish:
      return append(algorithm::eltwise_mish);
    case ActivationKind::softsign:
      return false;
  }
  return false;
}

bool scales_along(const graph::Activation& activation) {
  using Kind = ActivationKind;
  constexpr std::array kLinear{Kind::none, Kind::relu, Kind::clip, Kind::leaky_relu,
                               Kind::hard_sigmoid};
  return std::ranges::find(kLinear, activation.kind) != kLinear.end();
}

PackedWeight::PackedWeight(const void* values, const memory::desc& from, const memory::desc& to)
    : bytes_(to.get_size()), memory_(to, cpu(), bytes_.data()) {
  dnnl::memory source(from, cpu(), const_cast<void*>(values));  // only read
  dnnl::stream stream(cpu());
  dnnl::reorder(source, memory_).execute(stream, source, memory_);
  stream.wait();
}

PrimitiveKernel::PrimitiveKernel(Parts parts) : parts_(std::move(parts)), stream_(cpu()) {}

std::size_t PrimitiveKernel::weight_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [id, weight] : parts_.weights) bytes += weight.bytes();
  return bytes;
}

void PrimitiveKernel::bind(const Bindings& bindings) {
  memories_.clear();
  arguments_.clear();
  memories_.reserve(parts_.inputs.size() + 2);
  const auto add = [&](int id, const memory::desc& desc, std::byte* data) {
    memories_.emplace_back(desc, cpu(), data);
    arguments_.push_back({id, memories_.back().get()});
  };
  for (const Argument& argument : parts_.inputs) {
    // oneDNN's handles are not const; inputs are only read.
    add(argument.id, argument.desc, const_cast<std::byte*>(bindings.inputs[argument.input]));
  }
  add(DNNL_ARG_DST, parts_.result, bindings.outputs[0]);
  add(DNNL_ARG_SCRATCHPAD, parts_.scratchpad, bindings.scratch);
  for (const auto& [id, weight] : parts_.weights) arguments_.push_back({id, weight.memory().get()});
}

Status PrimitiveKernel::run() {
  const auto status =
      dnnl_primitive_execute(parts_.primitive.get(), stream_.get(),
                             static_cast<int>(arguments_.size()), arguments_.data());
  if (status == dnnl_success) return {};
  return fail(ErrorCode::internal,
              fmt::format("oneDNN gave up with status {}", static_cast<int>(status)));
}

dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(post_ops);
  return attributes;
}

bool is_slow(const std::string& implementation) {
  return implementation.find("ref") != std::string::npos;
}

}  // namespace fleetfit::engine::onednn

namespace fleetfit::engine {

std::vector<std::string> onednn_ways(const Task& task) {
  if (onednn::takes_winograd(task)) return {"", "winograd"};
  return {""};
}

KernelPtr make_onednn_kernel(const Task& task, std::string_view way) {
  const auto algorithm = way == "winograd" ? dnnl::algorithm::convolution_winograd
                                           : dnnl::algorithm::convolution_direct;
  try {
    if (auto convolution = onednn::make_convolution(task, algorithm)) return convolution;
    static const graph::OperatorTable<KernelEntry> kTable{onednn::plain_kernels()};
    const auto* entry = kTable.find(task.node.op);
    return entry != nullptr ? entry->make(task) : nullptr;
  } catch (const dnnl::error&) {
    return nullptr;  // the library says in this way that it has no such kernel
  }
}

bool onednn_can(const Task& task) {
  try {
    return onednn::can_convolve(task);
  } catch (const dnnl::error&) {
    return false;
  }
}

std::string onednn_identity() {
  const auto* version = dnnl_version();
  return fmt::format("onednn {}.{}.{} isa {}", version->major, version->minor, version->patch,
                     static_cast<int>(dnnl_get_effective_cpu_isa()));
}

}  // namespace fleetfit::engine
