#include "engine/aligned_memory.h"

#include <cstring>
#include <new>

namespace fleetfit::engine {

AlignedMemory::AlignedMemory(std::size_t bytes) : size_(bytes) {
  const std::size_t reserved = (bytes + kSpareBytes + kAlignment - 1) / kAlignment * kAlignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, reserved)));
  if (!data_) throw std::bad_alloc();
  std::memset(data_.get(), 0, reserved);
}

}  // namespace fleetfit::engine
