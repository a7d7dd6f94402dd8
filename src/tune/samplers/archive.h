#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "fleetfit/tune/sampler.h"

namespace fleetfit::tune {

/// What an archive keeps of an observation.
struct Kept {
  Point point = {};
  std::vector<double> values = {};  ///< NaN counts as infinitely bad
  double violation = 0;
  std::size_t trial = 0;
};

/// The best observations and an even sample of the others, however many there were. What breaks a
/// limit comes after all that break none, the less the better; among the others, those of lower
/// non-dominated rank are better, and of one rank those that add more to the dominated volume.
/// Of one objective it depends on what was reported, not on the order, so that a study that is
/// replayed after a crash is the same.
class Archive {
 public:
  struct Limits {
    std::size_t best = 64;
    std::size_t others = 256;
  };

  Archive(std::size_t objectives, const Limits& limits);

  /// Logarithmic in the limits.
  void tell(const Observation& observation);

  std::size_t count() const { return count_; }

  /// The best first; all that are not among the others, at least as many as the limit.
  const std::vector<Kept>& best() const;
  /// A sample of those that are not among them, each as likely as the other, in no special order.
  const std::vector<Kept>& others() const { return others_; }
  /// How many observations each of the sample stands for.
  double weight_of_others() const;

 private:
  void insert_sorted(Kept kept);
  void sort_out();
  void sample(Kept kept);

  std::size_t objectives_;
  Limits limits_;
  std::size_t count_ = 0;
  mutable std::vector<Kept> best_;
  mutable bool ranked_ = true;  ///< `best_` is in order
  std::vector<Kept> others_;    ///< a heap, the first to be replaced in front
};

/// Brings observations with several values into the order that `Archive` describes.
void rank_best_first(std::vector<Kept>& observations, std::size_t objectives);

/// An archive for each level.
class Levels {
 public:
  Levels(const SamplerOptions& options, const Archive::Limits& limits);

  void tell(const Observation& observation);

  /// Of the highest level that has at least so many observations; null if none has.
  const Archive* highest_with(std::size_t observations) const;

  /// Whether the point was neither reported, at any level, nor is pending.
  bool is_new(const Point& point, std::span<const Point> pending) const;

 private:
  std::vector<Archive> archives_;
  std::unordered_set<std::uint64_t> told_;
};

/// The same for points that are the same.
std::uint64_t fingerprint(const Point& point);

/// A random point, a new one if some tries find one.
Point draw_new(const Parameters& parameters, const Levels& levels, std::span<const Point> pending,
               core::Random& random);

}  // namespace fleetfit::tune
