#pragma once

#include <Eigen/Dense>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/space/design.h"
#include "fleetfit/transfer/linear_proxy.h"

namespace fleetfit::transfer {

enum class Paths : std::uint8_t { all, live };

/// Something whose price may differ between devices: an operator at one place, all operators of a
/// kind, all choices of a place. A design has as much of it as the amounts of its columns add up
/// to.
struct Direction {
  std::string name = {};
  Paths paths = Paths::all;
  std::vector<std::pair<std::size_t, double>> amounts = {};  ///< by column of "one-hot" or "live"
};

/// Sets of directions that are looked at as wholes, from coarse to fine.
std::vector<std::vector<Direction>> direction_sets(const LinearProxy& proxy);

/// A row for each design and a column for each direction.
Eigen::MatrixXd amounts_of(const space::Space& space, space::DesignBatch designs,
                           const std::vector<Direction>& directions);

}  // namespace fleetfit::transfer
