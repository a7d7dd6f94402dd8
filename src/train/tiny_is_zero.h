#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstdint>

namespace fleetfit::train {

/// As long as it lives, numbers below the smallest normal one (1e-38) count as zero in the thread
/// that made it. Weights that nothing needs decay to such numbers, with which processors compute
/// up to a hundred times slower. Where the processor is not known, nothing changes.
class TinyIsZero {
 public:
  TinyIsZero() { set(before_ | kTinyIsZero); }
  ~TinyIsZero() { set(before_); }
  TinyIsZero(const TinyIsZero&) = delete;
  TinyIsZero& operator=(const TinyIsZero&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr std::uint64_t kTinyIsZero = 0x8040;  // of results and of operands
  static std::uint64_t get() { return _mm_getcsr(); }
  static void set(std::uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__) && defined(__GNUC__)
  static constexpr std::uint64_t kTinyIsZero = 1u << 24;
  static std::uint64_t get() {
    std::uint64_t mode = 0;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void set(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  static constexpr std::uint64_t kTinyIsZero = 0;
  static std::uint64_t get() { return 0; }
  static void set(std::uint64_t /*mode*/) {}
#endif

  std::uint64_t before_ = get();
};

}  // namespace fleetfit::train
