#include "graph/evaluate/values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/operands.h"

namespace fleetfit::graph::interpreter {
namespace {

/// Walks the axes of a result, outermost first, and appends its elements.
template <class Element>
class Taker {
 public:
  Taker(const Element* source, const Offsets& offsets, Element fill, Element* out)
      : source_(source), offsets_(offsets), fill_(fill), out_(out) {}

  void take(std::size_t axis, std::int64_t base) {
    if (axis == offsets_.size()) {
      *out_++ = base < 0 ? fill_ : source_[base];
    } else if (axis + 1 == offsets_.size()) {
      take_row(offsets_[axis], base);
    } else {
      for (const auto offset : offsets_[axis]) take(axis + 1, sum(base, offset));
    }
  }

 private:
  static std::int64_t sum(std::int64_t base, std::int64_t offset) {
    return base < 0 || offset < 0 ? kFill : base + offset;
  }

  void take_row(const Ints& row, std::int64_t base) {
    for (const auto offset : row) {
      const auto at = sum(base, offset);
      *out_++ = at < 0 ? fill_ : source_[at];
    }
  }

  const Element* source_;
  const Offsets& offsets_;
  Element fill_;
  Element* out_;
};

template <class Element>
std::vector<std::byte> take_elements(const Value& source, const Offsets& offsets,
                                     std::span<const std::byte> fill) {
  std::size_t count = 1;
  for (const auto& axis : offsets) count *= axis.size();
  std::vector<std::byte> bytes(count * sizeof(Element));
  if (count == 0) return bytes;
  Element filling{};
  if (fill.size() == sizeof(Element)) std::memcpy(&filling, fill.data(), sizeof(Element));
  auto* out = reinterpret_cast<Element*>(bytes.data());
  Taker<Element>(source.data.as<Element>().data(), offsets, filling, out).take(0, 0);
  return bytes;
}

std::vector<std::byte> take_bytes(const Value& source, const Offsets& offsets,
                                  std::span<const std::byte> fill) {
  switch (size_of(source.dtype)) {
    case 1:
      return take_elements<std::uint8_t>(source, offsets, fill);
    case 2:
      return take_elements<std::uint16_t>(source, offsets, fill);
    case 4:
      return take_elements<std::uint32_t>(source, offsets, fill);
    default:
      return take_elements<std::uint64_t>(source, offsets, fill);
  }
}

/// The permutation that brings channels from last to second place, or back.
Ints channels_to_front(std::size_t rank) {
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  if (rank > 2) std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  return perm;
}

Ints channels_to_back(std::size_t rank) {
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  if (rank > 2) std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return perm;
}

/// The index that an index before or behind the extent takes.
std::int64_t padded_index(PadMode mode, std::int64_t index, std::int64_t extent) {
  if (index >= 0 && index < extent) return index;
  if (mode == PadMode::constant) return kFill;
  if (mode == PadMode::edge) return index < 0 ? 0 : extent - 1;
  if (extent == 1) return 0;
  const auto period = 2 * (extent - 1);
  const auto within = ((index % period) + period) % period;
  return within < extent ? within : period - within;
}

}  // namespace

Value reshaped(const Value& value, Shape shape) {
  return Value{value.dtype, std::move(shape), value.data, value.quantization};
}

Value converted(const Value& value, DType type) {
  if (value.dtype == type) return value;
  const Form form{type, value.shape};
  if (is_float(value.dtype)) return write(form, read<double>(value));
  if (value.dtype == DType::u64) return write(form, read<std::uint64_t>(value));
  return write(form, read<std::int64_t>(value));
}

Ints strides_of(const Shape& shape) {
  Ints strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Value take(const Value& source, const Offsets& offsets, std::span<const std::byte> fill) {
  Shape shape;
  for (const auto& axis : offsets) shape.push_back(static_cast<std::int64_t>(axis.size()));
  return Value{source.dtype, std::move(shape), TensorData::own(take_bytes(source, offsets, fill)),
               source.quantization};
}

Value pick(const Value& source, Offsets indices, std::span<const std::byte> fill) {
  const auto strides = strides_of(source.shape);
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    for (auto& index : indices[axis]) index = index < 0 ? kFill : index * strides[axis];
  }
  return take(source, indices, fill);
}

Value permuted(const Value& source, const Ints& perm) {
  const auto strides = strides_of(source.shape);
  Offsets offsets;
  for (const auto axis : perm) {
    auto& along = offsets.emplace_back(source.shape[axis]);
    for (std::size_t i = 0; i < along.size(); ++i)
      along[i] = static_cast<std::int64_t>(i) * strides[axis];
  }
  return take(source, offsets);
}

Result<Value> broadcast(const Value& source, const Shape& shape) {
  if (source.shape == shape) return source;
  const auto wrong = [&] {
    return misfit("{} cannot be broadcast to {}", to_string(source.shape), to_string(shape));
  };
  if (source.shape.size() > shape.size()) return wrong();
  Shape aligned(shape.size() - source.shape.size(), 1);
  aligned.insert(aligned.end(), source.shape.begin(), source.shape.end());
  const auto strides = strides_of(aligned);
  Offsets offsets;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (aligned[axis] != 1 && aligned[axis] != shape[axis]) return wrong();
    auto& along = offsets.emplace_back(shape[axis], 0);
    if (aligned[axis] == 1) continue;
    for (std::size_t i = 0; i < along.size(); ++i)
      along[i] = static_cast<std::int64_t>(i) * strides[axis];
  }
  return take(source, offsets);
}

Value to_channels_first(const Value& image, Layout layout) {
  if (layout == Layout::nchw) return image;
  return permuted(image, channels_to_front(image.shape.size()));
}

Value from_channels_first(const Value& image, Layout layout) {
  if (layout == Layout::nchw) return image;
  return permuted(image, channels_to_back(image.shape.size()));
}

Shape to_channels_first(const Shape& shape, Layout layout) {
  if (layout == Layout::nchw) return shape;
  Shape out;
  for (const auto axis : channels_to_front(shape.size())) out.push_back(shape[axis]);
  return out;
}

Ints counting(std::int64_t count) {
  Ints all(count);
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

Offsets everything(const Shape& shape) {
  Offsets all;
  for (const auto extent : shape) all.push_back(counting(extent));
  return all;
}

Result<Offsets> padded(PadMode mode, const Ints& pads, const Shape& from, const Shape& to) {
  Offsets indices;
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    if (mode != PadMode::constant && from[axis] == 0 && to[axis] > 0) {
      return misfit("dimension {} has nothing to pad with", axis);
    }
    auto& along = indices.emplace_back(counting(to[axis]));
    for (auto& index : along) index = padded_index(mode, index - pads[axis], from[axis]);
  }
  return indices;
}

namespace {

int bias(HalfFormat format) { return (1 << (format.exponent_bits - 1)) - 1; }

int infinity_bits(HalfFormat format) {
  return ((1 << format.exponent_bits) - 1) << format.fraction_bits;
}

int magnitude_bits(double magnitude, HalfFormat format) {
  const int infinity = infinity_bits(format);
  if (std::isnan(magnitude)) return infinity | (1 << (format.fraction_bits - 1));
  if (std::isinf(magnitude)) return infinity;
  const int lowest = 1 - bias(format);
  const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), lowest) : lowest;
  const auto steps = std::lrint(std::ldexp(magnitude, format.fraction_bits - exponent));
  // `steps` holds the leading one of a normal number, which adds one to the exponent, and carries
  // into it when the fraction rounds up to the next power of two.
  const auto bits = ((exponent + bias(format) - 1) << format.fraction_bits) + steps;
  return static_cast<int>(std::min<long>(bits, infinity));
}

}  // namespace

std::uint16_t encode_half(double value, HalfFormat format) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  return static_cast<std::uint16_t>(sign | magnitude_bits(std::abs(value), format));
}

double decode_half(std::uint16_t bits, HalfFormat format) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits & 0x7fff) >> format.fraction_bits;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  if (exponent == (1 << format.exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const int leading = exponent == 0 ? 0 : 1 << format.fraction_bits;
  return sign * std::ldexp(leading + fraction,
                           std::max(exponent, 1) - bias(format) - format.fraction_bits);
}

}  // namespace fleetfit::graph::interpreter
