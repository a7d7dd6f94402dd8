#pragma once

#include <cstddef>

namespace fleetfit::graph::tflite {

/// Bounds what is copied out of a file. Parts of a FlatBuffer may be referred to any number of
/// times, so that a small file could otherwise ask for any amount of memory.
class CopyBudget {
 public:
  explicit CopyBudget(std::size_t file_bytes) : left_(2 * file_bytes + kSmallChange) {}

  /// Whether this many bytes more may be copied.
  [[nodiscard]] bool take(std::size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  static constexpr std::size_t kSmallChange = std::size_t{1} << 20;
  std::size_t left_;
};

}  // namespace fleetfit::graph::tflite
