#include "engine/own/byte_table.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fleetfit::engine::own {
namespace {

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

void look_up(const ByteTable& table, const std::uint8_t* in, std::uint8_t* out,
             std::int64_t count) {
  static const bool kInBlocks = has_byte_permutations();
  std::int64_t i = kInBlocks ? look_up_blocks(table, in, out, count) : 0;
  for (; i < count; ++i) out[i] = table[in[i]];
}

}  // namespace fleetfit::engine::own
