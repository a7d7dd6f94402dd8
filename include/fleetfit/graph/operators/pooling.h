#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/operators/window.h"

namespace fleetfit::graph {

enum class PoolKind : std::uint8_t { max, average };

struct Pool {
  PoolKind kind = PoolKind::max;
  Window window;
  bool count_include_pad = false;
  Layout layout = Layout::nchw;
};

/// Pools each channel to one element, keeping the rank.
struct GlobalPool {
  PoolKind kind = PoolKind::average;
  Layout layout = Layout::nchw;
};

using PoolingOperators = OperatorList<Pool, GlobalPool>;

}  // namespace fleetfit::graph
