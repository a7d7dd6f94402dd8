#include "graph/onnx/wire.h"

#include <bit>
#include <cstring>

namespace fleetfit::graph::onnx_format {
namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
bool append_fixed(const Field& field, std::vector<T>& out) {
  if (!field.is_bytes) {
    if (field.fixed_size != sizeof(T)) return false;
    out.push_back(load<T>(reinterpret_cast<const std::byte*>(&field.value)));
    return true;
  }
  if (field.payload.size() % sizeof(T) != 0) return false;
  for (std::size_t at = 0; at < field.payload.size(); at += sizeof(T))
    out.push_back(load<T>(field.payload.data() + at));
  return true;
}

/// Reads a varint at the front of `bytes` and moves past it.
std::optional<std::uint64_t> take_varint(Bytes& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes = bytes.subspan(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

// The wire types of protobuf; the two others are no longer written by anybody.
constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kFixed64 = 1;
constexpr std::uint64_t kLengthDelimited = 2;
constexpr std::uint64_t kFixed32 = 5;

}  // namespace

static_assert(std::endian::native == std::endian::little, "ONNX files are little-endian");

float Field::as_float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(value)); }

std::string_view Field::as_text() const {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

std::optional<Field> MessageReader::fail() {
  failed_ = true;
  rest_ = {};
  return std::nullopt;
}

std::optional<std::uint64_t> MessageReader::varint() { return take_varint(rest_); }

std::optional<Bytes> MessageReader::take(std::uint64_t count) {
  if (count > rest_.size()) return std::nullopt;
  const auto taken = rest_.first(static_cast<std::size_t>(count));
  rest_ = rest_.subspan(static_cast<std::size_t>(count));
  return taken;
}

std::optional<Field> MessageReader::next() {
  if (rest_.empty()) return std::nullopt;
  const auto tag = varint();
  if (!tag || *tag >> 3 == 0 || *tag >> 3 > 0x1fffffff) return fail();
  Field field{.number = static_cast<int>(*tag >> 3)};
  switch (*tag & 7) {
    case kVarint: {
      const auto value = varint();
      if (!value) return fail();
      field.value = *value;
      return field;
    }
    case kFixed64:
    case kFixed32: {
      field.fixed_size = (*tag & 7) == kFixed64 ? 8 : 4;
      const auto raw = take(static_cast<std::uint64_t>(field.fixed_size));
      if (!raw) return fail();
      std::memcpy(&field.value, raw->data(), raw->size());
      return field;
    }
    case kLengthDelimited: {
      const auto length = varint();
      const auto payload = length ? take(*length) : std::nullopt;
      if (!payload) return fail();
      field.is_bytes = true;
      field.payload = *payload;
      return field;
    }
    default:
      return fail();
  }
}

bool append_ints(const Field& field, std::vector<std::int64_t>& out) {
  if (!field.is_bytes) {
    out.push_back(field.as_int());
    return true;
  }
  for (auto rest = field.payload; !rest.empty();) {
    const auto value = take_varint(rest);
    if (!value) return false;
    out.push_back(static_cast<std::int64_t>(*value));
  }
  return true;
}

bool append_floats(const Field& field, std::vector<float>& out) { return append_fixed(field, out); }

bool append_doubles(const Field& field, std::vector<double>& out) {
  return append_fixed(field, out);
}

}  // namespace fleetfit::graph::onnx_format
