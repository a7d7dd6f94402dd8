#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace fleetfit::core {

/// A random 64-bit number that depends only on `seed` and `index`: the output number `index` (from
/// 0) of the generator splitmix64 seeded with `seed`. For large tensors that are filled by index in
/// any order.
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// The double in [0, 1) that the upper 53 bits of `bits` stand for.
constexpr double unit_interval(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// A seeded random generator (xoshiro256**). The same seed gives the same numbers on every
/// platform. Not for secrets. One object belongs to one thread: give each task a child of its own
/// by `split`.
class Random {
 public:
  explicit Random(std::uint64_t seed);

  std::uint64_t seed() const { return seed_; }

  /// An independent child. It depends on this generator's seed and on `key` only, never on how many
  /// numbers were drawn. Numbers and texts are keys of different families.
  Random split(std::uint64_t key) const;
  Random split(std::string_view key) const;

  /// All 64 bits random.
  std::uint64_t next();

  /// Uniform in [0, bound), without bias. `bound` must be positive.
  std::uint64_t below(std::uint64_t bound);

  /// Uniform in [low, high], both included. `low` must not exceed `high`.
  std::int64_t between(std::int64_t low, std::int64_t high);

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return unit_interval(next()); }

  /// Uniform in [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  /// Mean 0, standard deviation 1.
  double normal();

  /// True with the given probability.
  bool chance(double probability) { return uniform() < probability; }

  /// Brings the items into a random order; every order is equally likely.
  template <class T>
  void shuffle(std::span<T> items);
  template <class T>
  void shuffle(std::vector<T>& items) {
    shuffle(std::span<T>(items));
  }

  /// `count` different numbers below `population`, in random order. Costs time and memory of the
  /// order of `count`, however large the population. `count` must not exceed `population`.
  std::vector<std::uint64_t> sample(std::uint64_t population, std::size_t count);

 private:
  std::uint64_t seed_;
  std::array<std::uint64_t, 4> state_;
};

template <class T>
void Random::shuffle(std::span<T> items) {
  for (std::size_t left = items.size(); left > 1; --left) {
    using std::swap;
    swap(items[left - 1], items[static_cast<std::size_t>(below(left))]);
  }
}

}  // namespace fleetfit::core
