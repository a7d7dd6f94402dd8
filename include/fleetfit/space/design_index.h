#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fleetfit/space/design.h"
#include "fleetfit/space/space.h"

namespace fleetfit::space {

/// Numbers designs of one space in the order in which they are added, and finds them again: by
/// direct look-up in a small space, by hashing in a large one. Designs have to be those that
/// `Space::check` accepts.
class DesignIndex {
 public:
  explicit DesignIndex(const Space& space);

  std::size_t size() const { return designs_.size(); }
  const Population& designs() const { return designs_; }

  /// The design's number; nothing if it was not added. Safe to call from many threads.
  std::optional<std::size_t> find(Design design) const;

  /// False, and nothing changes, if the design is there.
  bool add(Design design);

 private:
  bool is_direct() const { return !radices_.empty(); }
  std::size_t place(Design design) const;
  void grow();

  Population designs_;
  std::vector<std::size_t> radices_;   // choices of each gene; empty if there are too many designs
  std::vector<std::uint32_t> places_;  // number of the design + 1; 0 where none is
};

}  // namespace fleetfit::space
