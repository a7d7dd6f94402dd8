#pragma once

#include <xnnpack.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/aligned_memory.h"
#include "engine/kernel.h"
#include "fleetfit/graph/operators.h"

/// What XNNPACK is handed as its pool of threads: it only passes the pointer on, to functions that
/// are ours. It holds no thread; the loops run on the pool of threads.h.
struct pthreadpool {
  std::size_t threads = 1;
};

/// The two functions of an operator of the library, as template arguments.
#define FLEETFIT_XNN(name) xnn_create_##name, xnn_setup_##name

/// What the XNNPACK kernels share. They take plain tensors, images with their channels last.
namespace fleetfit::engine::xnnpack {

/// Whether XNNPACK's calls arrive at our functions (pthreadpool_on_gomp.cc) rather than at
/// libpthreadpool, which would take a pool of ours for one of its own.
bool pool_is_ours();

using S8 = std::int8_t;
using U8 = std::uint8_t;

inline constexpr std::size_t kMostDimensions = XNN_MAX_TENSOR_DIMS;

struct DeleteOperator {
  void operator()(xnn_operator_t op) const { xnn_delete_operator(op); }
};
using OperatorPtr = std::unique_ptr<xnn_operator, DeleteOperator>;

/// Calls one of the library's xnn_create_* functions; nothing if it refuses.
template <class Create, class... Arguments>
OperatorPtr create(Create function, Arguments... arguments) {
  xnn_operator_t op = nullptr;
  if (function(arguments..., &op) != xnn_status_success) return nullptr;
  return OperatorPtr(op);
}

/// Where a tensor lies once a kernel is bound.
struct Place {
  enum class Memory { input, output, scratch, constant };
  Memory memory = Memory::input;
  std::size_t index = 0;
  std::size_t offset = 0;                    ///< bytes
  std::shared_ptr<AlignedMemory> held = {};  ///< of a constant; shared by the copies of the place

  std::byte* address(const Bindings& bindings) const;
  template <class T>
  T* as(const Bindings& bindings) const {
    return reinterpret_cast<T*>(address(bindings));
  }
};

/// The input, or a copy of its constant with the spare bytes that the library reads behind it.
Place place_of_input(const Task& task, std::size_t index);
inline Place place_of_output(std::size_t index = 0) { return {Place::Memory::output, index}; }

/// How an operator learns where its tensors are. `shape` is what stands between the operator and
/// them in the arguments.
template <class From, class To = From, class Setup, class... Shape>
auto between(Setup setup, const Place& from, const Place& to, Shape... shape) {
  return [=](xnn_operator_t op, const Bindings& bindings, pthreadpool_t pool) {
    return setup(op, shape..., from.as<const From>(bindings), to.as<To>(bindings), pool);
  };
}

/// One operator of the library, and how it learns where its tensors are.
struct Stage {
  OperatorPtr op;
  std::function<xnn_status(xnn_operator_t, const Bindings&, pthreadpool_t)> setup;
};

/// What a kernel is made of. It is put together step by step; `fail` marks that the library cannot.
class KernelParts {
 public:
  KernelParts(const Task& task, std::string name) : task_(task), name_(std::move(name)) {}

  template <class Setup>
  void add(OperatorPtr op, Setup setup) {
    failed_ = failed_ || !op;
    stages_.push_back({std::move(op), std::move(setup)});
  }
  void fail() { failed_ = true; }
  void reserve_scratch(std::size_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }
  void count_weights(std::size_t bytes) { weight_bytes_ += bytes; }

  /// Adds a function of each of `n` elements. `arguments` are those that only this function has.
  template <auto create_function, auto setup, class From = float, class To = From,
            class... Arguments>
  void add_function(const Place& from, const Place& to, std::size_t n, Arguments... arguments) {
    add(create(create_function, n, n, n, arguments..., 0U), between<From, To>(setup, from, to, 1));
  }

  /// Adds what computes an activation of floats.
  void add_activation(const graph::Activation& activation, const Place& from, const Place& to,
                      std::size_t elements);

  /// The kernel; nothing if a part is missing. The activation of the task's node is added to it,
  /// in place, unless the parts do it already. One that the library lacks is done by a kernel of
  /// our own.
  enum class Activation { missing, included };
  KernelPtr kernel(Activation activation) &&;

 private:
  const Task& task_;
  std::string name_;
  std::vector<Stage> stages_;
  KernelPtr last_;
  std::size_t scratch_bytes_ = 0;
  std::size_t weight_bytes_ = 0;
  bool failed_ = false;
};

// Whether a kernel has the activation of its node done when its parts are.
inline constexpr auto kActivated = KernelParts::Activation::included;
inline constexpr auto kNotActivated = KernelParts::Activation::missing;

/// A kernel of one operator, from the first input to the output. `shape` is as in `between`.
template <class From, class To = From, class Setup, class... Shape>
KernelPtr one_operator(const Task& task, std::string name, KernelParts::Activation activation,
                       OperatorPtr op, Setup setup, Shape... shape) {
  KernelParts parts(task, std::move(name));
  parts.add(std::move(op),
            between<From, To>(setup, place_of_input(task, 0), place_of_output(), shape...));
  return std::move(parts).kernel(activation);
}

/// What an activation that only limits values limits them to; nothing for other activations.
struct Bounds {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  bool limits() const {
    return low != -std::numeric_limits<float>::infinity() ||
           high != std::numeric_limits<float>::infinity();
  }
};
/// A float operator that takes bounds gets `bounds_of(activation).value_or(Bounds{})`, and
/// `is_included` says whether these are the activation.
inline KernelParts::Activation is_included(const std::optional<Bounds>& bounds) {
  return bounds ? kActivated : kNotActivated;
}
std::optional<Bounds> bounds_of(const graph::Activation& activation);

/// Numbers stored with one scale.
struct Affine {
  float scale = 1;
  std::int32_t zero_point = 0;

  bool operator==(const Affine&) const = default;
};
/// Nothing if the operand is not stored in bytes with one scale for all.
std::optional<Affine> affine(const Operand& operand);

/// Stored numbers between which results lie; nothing if the activation does more than limit.
template <class T>
struct StoredBounds {
  T low;
  T high;
};
template <class T>
std::optional<StoredBounds<T>> stored_bounds(const graph::Activation& activation,
                                             const Affine& result);

/// Elements of both mean the same: type and quantization.
bool same_meaning(const Operand& a, const Operand& b);
inline std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }
std::size_t element_count(const Operand& operand);

/// Images with their channels last, as batch x height x width x channels; one of rank 3 has height
/// 1. Nothing for other ranks.
struct Image {
  std::size_t batch = 1;
  std::size_t height = 1;
  std::size_t width = 1;
  std::size_t channels = 1;
};
std::optional<Image> image(const Operand& operand, graph::Layout layout);

/// A window over two dimensions as the library takes it.
struct Window2d {
  struct Side {
    std::uint32_t height = 0;
    std::uint32_t width = 0;
  };
  Side kernel, strides, dilations, pads_begin, pads_end;
};
/// The pads are those to be used. Nothing if there are more dimensions or a pad is negative.
std::optional<Window2d> window2d(const graph::Window& window, const graph::Ints& pads_begin,
                                 const graph::Ints& pads_end);

// What each file has kernels for.
std::span<const KernelEntry> convolution_kernels();
std::span<const KernelEntry> elementwise_kernels();
std::span<const KernelEntry> movement_kernels();
std::span<const KernelEntry> pooling_kernels();

}  // namespace fleetfit::engine::xnnpack
