#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace fleetfit::engine {

/// Zeroed memory aligned to a cache line, with some spare bytes behind it: kernels of XNNPACK read
/// past the end of their operands.
class AlignedMemory {
 public:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kSpareBytes = 128;

  explicit AlignedMemory(std::size_t bytes) : size_(bytes) {
    const std::size_t reserved = (bytes + kSpareBytes + kAlignment - 1) / kAlignment * kAlignment;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, reserved)));
    if (!data_) throw std::bad_alloc();
    std::memset(data_.get(), 0, reserved);
  }

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): this is the RAII
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  std::size_t size_;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace fleetfit::engine
