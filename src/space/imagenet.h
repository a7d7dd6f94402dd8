#pragma once

#include <cstdint>

/// What spaces of networks for ImageNet have in common.
namespace fleetfit::space {

inline constexpr std::int64_t kImage = 224;  ///< pixels on a side
inline constexpr std::int64_t kImageChannels = 3;
inline constexpr std::int64_t kClasses = 1000;
inline constexpr std::uint64_t kWeightSeed = 1;

}  // namespace fleetfit::space
