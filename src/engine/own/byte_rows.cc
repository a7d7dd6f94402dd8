#include <bit>

#include "engine/own/functions.h"
#include "engine/own/rows.h"
#include "fleetfit/core/vectorize.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Rows of quantized numbers: bytes that stand for reals by a scale and a zero point.
namespace fleetfit::engine::own {
namespace {

/// Bounds of a type less the zero point: what a rounded quotient may be.
struct Bounds {
  float low;
  float high;
};

FLEETFIT_INLINE Bounds bounds_of(const Scale& scale) {
  const std::int32_t lowest = scale.is_signed ? -128 : 0;
  return {static_cast<float>(lowest - scale.zero_point),
          static_cast<float>(lowest + 255 - scale.zero_point)};
}

FLEETFIT_INLINE std::uint8_t stored(float real, const Scale& scale, const Bounds& bounds) {
  float quotient = real / scale.scale;
  quotient = quotient > bounds.low ? quotient : bounds.low;  // also what is no number
  quotient = quotient < bounds.high ? quotient : bounds.high;
  const std::int32_t whole = std::bit_cast<std::int32_t>(quotient + kRounder) -
                             std::bit_cast<std::int32_t>(kRounder) + scale.zero_point;
  return static_cast<std::uint8_t>(whole);
}

template <bool is_signed>
FLEETFIT_INLINE float real_of(std::uint8_t byte, const Scale& scale) {
  const std::int32_t whole =
      is_signed ? static_cast<std::int32_t>(static_cast<std::int8_t>(byte)) : byte;
  return static_cast<float>(whole - scale.zero_point) * scale.scale;
}

#if defined(__x86_64__)
/// 64 bytes at a time: two permutations of 128 entries each, chosen by the highest bit. No compiler
/// finds this in a loop over a table, which takes a cycle for each byte.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) std::int64_t look_up_blocks(
    const ByteTable& table, const std::uint8_t* in, std::uint8_t* out, std::int64_t count) {
  constexpr std::int64_t kBytes = 64;
  const __m512i t0 = _mm512_loadu_si512(table.data());
  const __m512i t1 = _mm512_loadu_si512(table.data() + 64);
  const __m512i t2 = _mm512_loadu_si512(table.data() + 128);
  const __m512i t3 = _mm512_loadu_si512(table.data() + 192);
  std::int64_t i = 0;
  for (; i + kBytes <= count; i += kBytes) {
    const __m512i x = _mm512_loadu_si512(in + i);
    const __m512i low = _mm512_permutex2var_epi8(t0, x, t1);
    const __m512i high = _mm512_permutex2var_epi8(t2, x, t3);
    _mm512_storeu_si512(out + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
  }
  return i;
}

bool has_byte_permutations() { return __builtin_cpu_supports("avx512vbmi") != 0; }
#else
std::int64_t look_up_blocks(const ByteTable&, const std::uint8_t*, std::uint8_t*, std::int64_t) {
  return 0;
}

bool has_byte_permutations() { return false; }
#endif

}  // namespace

FLEETFIT_VECTORIZE void dequantize_row(const Scale& scale, const std::uint8_t* bytes, float* out,
                                       std::int64_t count) {
  if (scale.is_signed) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = real_of<true>(bytes[i], scale);
  } else {
    for (std::int64_t i = 0; i < count; ++i) out[i] = real_of<false>(bytes[i], scale);
  }
}

FLEETFIT_VECTORIZE void quantize_row(const Scale& scale, const float* reals, std::uint8_t* out,
                                     std::int64_t count) {
  const Scale local = scale;  // `out` might be the scale, for all that the compiler knows
  const Bounds bounds = bounds_of(local);
  for (std::int64_t i = 0; i < count; ++i) out[i] = stored(reals[i], local, bounds);
}

FLEETFIT_VECTORIZE void requantize_row(const Scale& from, const std::uint8_t* bytes,
                                       const Scale& to, std::uint8_t* out, std::int64_t count) {
  const Scale before = from;
  const Scale after = to;
  const Bounds bounds = bounds_of(after);
  if (before.is_signed) {
    FLEETFIT_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = stored(real_of<true>(bytes[i], before), after, bounds);
    }
  } else {
    FLEETFIT_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = stored(real_of<false>(bytes[i], before), after, bounds);
    }
  }
}

void look_up(const ByteTable& table, const std::uint8_t* in, std::uint8_t* out,
             std::int64_t count) {
  static const bool kInBlocks = has_byte_permutations();
  std::int64_t i = kInBlocks ? look_up_blocks(table, in, out, count) : 0;
  for (; i < count; ++i) out[i] = table[in[i]];
}

}  // namespace fleetfit::engine::own
