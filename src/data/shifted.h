#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "fleetfit/data/dataset.h"

namespace fleetfit::data {

/// How `shifted:ALPHA[@SEED]:SPEC` differs from SPEC.
struct Shift {
  double alpha = 1;  ///< of Dirichlet's distribution; the smaller, the fewer classes rule
  std::uint64_t seed = 1;
  std::string_view spec = {};
};

bool is_shifted_spec(std::string_view spec);

/// Fails with `invalid_input`, saying what such a spec looks like.
Result<Shift> parse_shift(std::string_view spec);

/// The share of each class, drawn by Dirichlet's distribution with the same parameter for all.
std::vector<double> draw_shares(std::size_t classes, const Shift& shift);

/// As many of the items as have the classes in the shift's shares. Reads every item once.
Result<std::unique_ptr<Dataset>> shift_classes(std::unique_ptr<Dataset> data, const Shift& shift);

}  // namespace fleetfit::data
