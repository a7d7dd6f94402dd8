#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "fleetfit/space/space.h"

namespace fleetfit::space {

/// What a design decides beside its architecture.
struct Policies {
  bool precision = false;  ///< float or int8
  bool pruning = false;    ///< which share of the channels stays

  bool operator==(const Policies&) const = default;
};

/// The designs of `base`, which must outlive it, with policies: their genes stand behind those of
/// the architecture. Networks are lowered as `base` does, then pruned, then quantized.
std::unique_ptr<const Space> make_policy_space(const Space& base, const Policies& policies);

}  // namespace fleetfit::space
