#pragma once

#include <array>
#include <cstdint>

namespace fleetfit::engine::own {

using ByteTable = std::array<std::uint8_t, 256>;

/// out[i] = table[in[i]]. `in` and `out` may be the same.
void look_up(const ByteTable& table, const std::uint8_t* in, std::uint8_t* out, std::int64_t count);

}  // namespace fleetfit::engine::own
