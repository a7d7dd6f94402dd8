#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fleetfit::graph::onnx_format {

using Bytes = std::span<const std::byte>;

/// One field of a protobuf message as it lies in the file.
struct Field {
  int number = 0;
  bool is_bytes = false;    ///< length-delimited: `payload` holds it, else `value` does
  std::uint64_t value = 0;  ///< varint, or the bits of a fixed32 or fixed64
  int fixed_size = 0;       ///< 4 or 8 for fixed32 and fixed64
  Bytes payload;

  std::int64_t as_int() const { return static_cast<std::int64_t>(value); }
  float as_float() const;
  std::string_view as_text() const;
};

/// Walks over the fields of a message in place, without copying: weights stay in the file. The
/// parsers that protobuf generates would copy them, and would blow a hostile message up to many
/// times its size.
class MessageReader {
 public:
  explicit MessageReader(Bytes message) : rest_(message) {}

  /// The next field; nothing at the end, or where the bytes stop making sense (see failed()).
  std::optional<Field> next();
  bool failed() const { return failed_; }

 private:
  std::optional<std::uint64_t> varint();
  std::optional<Bytes> take(std::uint64_t count);
  std::optional<Field> fail();

  Bytes rest_;
  bool failed_ = false;
};

/// Appends the numbers of a repeated field, packed or not; false if the bytes make no sense.
bool append_ints(const Field& field, std::vector<std::int64_t>& out);
bool append_floats(const Field& field, std::vector<float>& out);
bool append_doubles(const Field& field, std::vector<double>& out);

}  // namespace fleetfit::graph::onnx_format
