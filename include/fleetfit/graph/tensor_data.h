#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace fleetfit::graph {

/// Type of a tensor's elements.
enum class DType : std::uint8_t {
  unknown,
  f32,
  f16,
  bf16,
  f64,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  boolean,
  text,
};

/// Bytes of one element; 0 for `unknown` and `text`.
std::size_t size_of(DType type);

/// "float32", "int8", "bool", …
std::string_view to_string(DType type);

bool is_float(DType type);
bool is_integer(DType type);  ///< signed and unsigned, not bool

/// How to make the values of a constant that no file holds: value i is `center` plus `spread` times
/// a number in [-1, 1) that depends on the seed and i alone. Whole-number types round to the
/// nearest.
struct Recipe {
  DType dtype = DType::f32;  ///< f32, i8, u8, i32 or i64
  std::size_t count = 0;
  double center = 0;
  double spread = 0;
  std::uint64_t seed = 0;

  bool operator==(const Recipe&) const = default;
};

/// The immutable bytes of a constant. Copies share the bytes: a graph with a gigabyte of weights is
/// copied, rewritten and handed between threads at no cost. Safe to use from many threads.
class TensorData {
 public:
  /// Takes the bytes over.
  static TensorData own(std::vector<std::byte> bytes);

  /// Copies the elements.
  template <class T>
  static TensorData copy(std::span<const T> values) {
    const auto bytes = std::as_bytes(values);
    return own({bytes.begin(), bytes.end()});
  }
  template <class T>
  static TensorData copy(const std::vector<T>& values) {
    return copy(std::span<const T>(values));
  }

  /// Refers to bytes that `owner` keeps alive, e.g. a mapped file. Costs nothing until they are
  /// asked for.
  static TensorData view(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  /// Values made when first asked for, so that a network can be built and inspected without them.
  static TensorData generate(const Recipe& recipe);

  /// Changes the bytes of a constant in place, the same bytes always in the same way.
  using Change = std::function<void(std::span<std::byte>)>;

  /// Values that `change` makes of those of `from` when they are first asked for, so that a network
  /// can be rewritten and priced without anybody computing its weights. Keeps `from` and what
  /// `change` holds alive until the values are kept themselves.
  static TensorData derive(const TensorData& from, Change change);

  std::size_t size_bytes() const;

  /// The bytes, aligned to 8. Generated and derived values, and copies of views that are not
  /// aligned, are made at the first call and kept.
  std::span<const std::byte> bytes() const;

  /// The bytes as elements; T must be the tensor's element type.
  template <class T>
  std::span<const T> as() const {
    const auto raw = bytes();
    return {reinterpret_cast<const T*>(raw.data()), raw.size() / sizeof(T)};
  }

  /// Writes the bytes to `out` (of size_bytes()) without keeping anything.
  void copy_to(std::span<std::byte> out) const;

  /// Same bytes.
  bool operator==(const TensorData& other) const;

 private:
  struct Storage;
  explicit TensorData(std::shared_ptr<const Storage> storage);

  // Shared by all copies of the constant in all graphs that were derived from one another.
  std::shared_ptr<const Storage> storage_;
};

}  // namespace fleetfit::graph
