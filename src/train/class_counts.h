#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fleetfit::train {

/// How often each class was found, was right, and both: of images or of pixels.
struct ClassCounts {
  std::vector<std::int64_t> found = {};
  std::vector<std::int64_t> wanted = {};
  std::vector<std::int64_t> both = {};

  void add(const ClassCounts& other);

  /// Share of labels that were found.
  double accuracy() const;

  /// Intersection over union, its mean over the classes that occur.
  double mean_iou() const;
};

}  // namespace fleetfit::train
