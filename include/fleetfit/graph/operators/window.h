#pragma once

#include <cstdint>
#include <vector>

/// What operators on images have in common.
namespace fleetfit::graph {

using Ints = std::vector<std::int64_t>;

enum class Layout : std::uint8_t { nchw, nhwc };

enum class AutoPad : std::uint8_t { explicit_pads, same_upper, same_lower, valid };

/// A window that slides over the spatial dimensions. All lists have one entry for each of them.
struct Window {
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints pads_begin;  ///< used with explicit_pads, else zero
  Ints pads_end;
  AutoPad auto_pad = AutoPad::explicit_pads;
  bool ceil_mode = false;

  bool operator==(const Window&) const = default;
};

}  // namespace fleetfit::graph
