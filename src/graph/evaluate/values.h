#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "fleetfit/graph/arithmetic.h"
#include "fleetfit/graph/evaluate.h"

/// Typed access to the values of tensors. The interpreter computes in few types: float and double
/// for real numbers, 64-bit whole numbers for the rest.
namespace fleetfit::graph::interpreter {

/// How a 16-bit float is laid out: a sign, the exponent, the fraction.
struct HalfFormat {
  int exponent_bits = 5;
  int fraction_bits = 10;
};
inline constexpr HalfFormat kIeeeHalf{5, 10};
inline constexpr HalfFormat kBrainFloat{8, 7};

/// The bits of the number nearest to `value`, ties to even; infinity beyond the largest.
std::uint16_t encode_half(double value, HalfFormat format);

/// Exact.
double decode_half(std::uint16_t bits, HalfFormat format);

/// Type and shape of a result.
struct Form {
  DType dtype = DType::f32;
  Shape shape;
};

// --- What elements are stored as.

struct Half {
  std::uint16_t bits;
};
struct BrainFloat {
  std::uint16_t bits;
};
/// Calls `visit` with a zero of the type in which elements of `type` are stored. `type` must have a
/// size.
template <class Visit>
decltype(auto) with_storage(DType type, Visit&& visit) {
  switch (type) {
    case DType::f16:
      return visit(Half{});
    case DType::bf16:
      return visit(BrainFloat{});
    case DType::f64:
      return visit(double{});
    case DType::i8:
      return visit(std::int8_t{});
    case DType::u8:
      return visit(std::uint8_t{});
    case DType::i16:
      return visit(std::int16_t{});
    case DType::u16:
      return visit(std::uint16_t{});
    case DType::i32:
      return visit(std::int32_t{});
    case DType::u32:
      return visit(std::uint32_t{});
    case DType::i64:
      return visit(std::int64_t{});
    case DType::u64:
      return visit(std::uint64_t{});
    case DType::boolean:
      return visit(Truth{});
    case DType::f32:
    case DType::text:
    case DType::unknown:
      break;
  }
  return visit(float{});
}

/// One number in another type, by the rules of `convert_plain`.
template <class To, class From>
To convert(From from) {
  if constexpr (std::is_same_v<From, Half>) {
    return convert<To>(decode_half(from.bits, kIeeeHalf));
  } else if constexpr (std::is_same_v<From, BrainFloat>) {
    return convert<To>(decode_half(from.bits, kBrainFloat));
  } else if constexpr (std::is_same_v<To, Half>) {
    return Half{encode_half(convert_plain<double>(from), kIeeeHalf)};
  } else if constexpr (std::is_same_v<To, BrainFloat>) {
    return BrainFloat{encode_half(convert_plain<double>(from), kBrainFloat)};
  } else {
    return convert_plain<To>(from);
  }
}

/// The elements as they are stored, without regard to quantization. `To` is float, double, int64_t
/// or uint64_t.
template <class To>
std::vector<To> read(const Value& value) {
  return with_storage(value.dtype, [&]<class From>(From) {
    const auto stored = value.data.as<From>();
    std::vector<To> out(stored.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = convert<To>(stored[i]);
    return out;
  });
}

/// A tensor of these numbers. There must be as many as `form` has elements.
template <class From>
Value write(Form form, const std::vector<From>& numbers) {
  auto data = with_storage(form.dtype, [&]<class To>(To) {
    std::vector<std::byte> bytes(numbers.size() * sizeof(To));
    auto* out = reinterpret_cast<To*>(bytes.data());
    for (std::size_t i = 0; i < numbers.size(); ++i) out[i] = convert<To>(numbers[i]);
    return TensorData::own(std::move(bytes));
  });
  return Value{form.dtype, std::move(form.shape), std::move(data), {}};
}

/// The same bytes in another shape.
Value reshaped(const Value& value, Shape shape);

/// The same numbers in another type, by `convert`; shares the bytes if it is of that type already.
Value converted(const Value& value, DType type);

// --- Moving elements of any type.

/// For each axis of a result, the offset in elements that each of its indices adds to the source.
/// kFill anywhere takes the fill instead.
using Offsets = std::vector<Ints>;
inline constexpr std::int64_t kFill = -1;

/// The distance in elements of neighbours along each axis.
Ints strides_of(const Shape& shape);

/// The tensor whose element (i, j, …) is the source's element number offsets[0][i] + offsets[1][j]
/// + …. `fill` is the bytes of one element, zero if empty. Offsets must be in range.
Value take(const Value& source, const Offsets& offsets, std::span<const std::byte> fill = {});

/// Like `take`, but lists for each axis the index to take, in range, or kFill.
Value pick(const Value& source, Offsets indices, std::span<const std::byte> fill = {});

/// 0, 1, …, count - 1.
Ints counting(std::int64_t count);

/// Indices that take a whole tensor.
Offsets everything(const Shape& shape);

/// Indices that take a tensor of `from` padded to `to`, with `pads` before each dimension. Fails if
/// a dimension has nothing to pad with.
Result<Offsets> padded(PadMode mode, const Ints& pads, const Shape& from, const Shape& to);

/// Axis i of the result is axis perm[i] of the source. `perm` must be a permutation.
Value permuted(const Value& source, const Ints& perm);

/// Repeated by numpy's rules to fill `shape`. Fails with `invalid_input` if it does not fit.
Result<Value> broadcast(const Value& source, const Shape& shape);

/// An image tensor, or its shape, with channels in second place, from and to this layout.
Value to_channels_first(const Value& image, Layout layout);
Value from_channels_first(const Value& image, Layout layout);
Shape to_channels_first(const Shape& shape, Layout layout);

}  // namespace fleetfit::graph::interpreter
