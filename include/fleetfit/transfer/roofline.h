#pragma once

#include <span>
#include <string>

#include "fleetfit/core/result.h"

/// Why two devices agree on the order of designs, or not: by what bounds the designs on each.
namespace fleetfit::transfer {

struct Peaks {
  double gflops = 0;             ///< most GFLOP/s
  double gbytes_per_second = 0;  ///< most GB/s to and from memory

  /// FLOPs for each byte from which arithmetic is what takes the time.
  double ridge() const { return gflops / gbytes_per_second; }
};

/// What a design does in a run.
struct Work {
  double flops = 0;
  double bytes = 0;  ///< read and written

  double intensity() const { return flops / bytes; }
};

struct RooflineComparison {
  double compute_bound_a = 0;  ///< share of the designs that arithmetic bounds on the first device
  double compute_bound_b = 0;
  double same_bound = 0;     ///< share of the designs that the same thing bounds on both
  double intensity_low = 0;  ///< of the designs
  double intensity_high = 0;
  double srcc = 0;  ///< rank correlation of the least times that the peaks allow
};

/// If one thing bounds all designs on both devices, they agree on their order; if it does so for
/// some designs only, they need not. Fails with `invalid_input` if peaks or work are not positive,
/// or if there are fewer than two designs.
Result<RooflineComparison> compare_rooflines(std::span<const Work> designs, const Peaks& a,
                                             const Peaks& b);

/// The comparison in words.
std::string explain(const RooflineComparison& comparison);

}  // namespace fleetfit::transfer
