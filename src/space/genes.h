#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/space/space.h"

namespace fleetfit::space {

/// A gene whose choices are amounts, each written behind `prefix`: k3, k5, k7.
Gene amounts(std::string name, std::string_view prefix, std::span<const std::int64_t> values,
             std::string before = "-");

/// 0.2, 0.4, … 1.8 times the channels, rounded to multiples of 8, each once: the range in which
/// nn-Meter varies the channels of known networks.
std::vector<std::int64_t> channels_around(std::int64_t channels);

}  // namespace fleetfit::space
