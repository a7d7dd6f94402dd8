#pragma once

#include <cstddef>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/space/design.h"

namespace fleetfit::adapt {

/// How good a subnet is on some images.
struct Evaluation {
  double accuracy = 0;    ///< share of images, or of pixels, whose class was found
  double confidence = 0;  ///< how clear it was, beside the others, from 0 to 1

  /// What searches go by: on few images, many subnets find as many classes, and how sure they are
  /// shows the better ones.
  double score() const { return (accuracy + confidence) / 2; }

  bool operator==(const Evaluation&) const = default;
};

/// Where searches get the quality of subnets from.
class SubnetQuality {
 public:
  virtual ~SubnetQuality() = default;
  /// In the order of the designs.
  virtual Result<std::vector<Evaluation>> evaluate(space::DesignBatch designs) = 0;
  /// Different subnets so far.
  virtual std::size_t evaluated() const = 0;
};

}  // namespace fleetfit::adapt
