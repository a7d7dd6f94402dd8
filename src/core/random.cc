#include "fleetfit/core/random.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <numbers>
#include <unordered_map>

namespace fleetfit::core {
namespace {

__extension__ using Uint128 = unsigned __int128;

// Children of number keys, children of text keys and the generator's own state must not meet.
constexpr std::uint64_t kNumberFamily = 0x6e756d6265727321u;
constexpr std::uint64_t kTextFamily = 0x7465787473212121u;

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// The C library's logarithm differs between platforms in the last bit; this one uses only
// operations that IEEE 754 defines exactly. The mantissa is brought to [sqrt(1/2), sqrt(2)), where
// the series of artanh converges in few terms.
double portable_log(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  const double t = (mantissa - 1) / (mantissa + 1);
  const double t2 = t * t;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * t2 + 1.0 / k;
  return 2 * t * sum + exponent * std::numbers::ln2;
}

}  // namespace

Random::Random(std::uint64_t seed)
    : seed_(seed), state_{mix(seed, 0), mix(seed, 1), mix(seed, 2), mix(seed, 3)} {}

Random Random::split(std::uint64_t key) const {
  return Random(mix(mix(seed_ ^ kNumberFamily, 0), key));
}

Random Random::split(std::string_view key) const {
  return Random(mix(mix(seed_ ^ kTextFamily, 0), fnv1a(key)));
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

// Lemire, "Fast random integer generation in an interval" (2019).
std::uint64_t Random::below(std::uint64_t bound) {
  assert(bound > 0);
  Uint128 product = Uint128{next()} * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = Uint128{next()} * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) {
  assert(low <= high);
  const std::uint64_t width =
      static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  const std::uint64_t offset = width == 0 ? next() : below(width);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

// Marsaglia's polar method.
double Random::normal() {
  for (;;) {
    const double u = 2 * uniform() - 1;
    const double v = 2 * uniform() - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * portable_log(s) / s);
  }
}

// Fisher and Yates on the list 0, 1, 2, … of which only the places that changed are kept.
std::vector<std::uint64_t> Random::sample(std::uint64_t population, std::size_t count) {
  assert(count <= population);
  std::unordered_map<std::uint64_t, std::uint64_t> moved;
  moved.reserve(count);
  const auto value_at = [&](std::uint64_t place) {
    const auto found = moved.find(place);
    return found == moved.end() ? place : found->second;
  };
  std::vector<std::uint64_t> chosen;
  chosen.reserve(count);
  for (std::uint64_t first = 0; first < count; ++first) {
    const std::uint64_t place = first + below(population - first);
    chosen.push_back(value_at(place));
    moved[place] = value_at(first);
  }
  return chosen;
}

}  // namespace fleetfit::core
