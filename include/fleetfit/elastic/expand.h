#pragma once

#include <cstddef>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::elastic {

/// Where branches get their first weights from.
enum class BranchStart : std::uint8_t {
  replaced,  ///< from what they replace: the most important channels, the block of the same shape
  random,    ///< the paper's way
};

struct ExpandOptions {
  double granularity = 0.1;  ///< most parameters of a block, as a share of the network's
  std::size_t merge = 2;     ///< most neighbours that a merged branch stands for beside the first
  std::vector<double> shrink = {0.5, 0.25};  ///< shares of channels that shrunk branches keep
  BranchStart start = BranchStart::replaced;
  std::uint64_t seed = 1;
};

/// Cuts the model into blocks: single input and output, never between operators that runtimes fuse,
/// as small as the structure allows and at most `granularity` of the network's parameters each (a
/// larger one stays fixed). Every block holds just its original branch. Fails with `invalid_input`
/// if the model cannot be cut.
Result<Supernet> cut_into_blocks(const graph::Graph& model, double granularity);

/// Cuts and adds branches. Blocks that repeat (two neighbours of a kind, or a kind that can be
/// shrunk) become elastic, the others stay as they are. Fails with `invalid_input`, saying what is
/// missing, if nothing can be made elastic: no repeating blocks, none that can be shrunk.
Result<Supernet> expand(const graph::Graph& model, const ExpandOptions& options = {});

}  // namespace fleetfit::elastic
