#pragma once

#include <cstddef>
#include <cstdint>
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
  double granularity = 0.1;  ///< most parameters of a block that could be cut, as a share of all
  std::size_t merge = 2;     ///< most neighbours that a merged branch stands for beside the first
  std::vector<double> shrink = {0.5, 0.25};  ///< shares of channels that shrunk branches keep
  double merge_shrink = 0.5;  ///< of those that stand for most blocks, a second one; 1: none
  BranchStart start = BranchStart::replaced;
  std::uint64_t seed = 1;
};

/// Cuts the model into blocks: single input and output, never between operators that runtimes fuse,
/// as small as the structure allows. Some neighbours become one block: those that only together
/// have channels of their own inside (two plain convolutions; expansion, depthwise convolution and
/// projection), and the halves of an encoder layer. Such a block has at most `granularity` of the
/// parameters, or no more than a block that cannot be cut. Every block holds just its
/// original branch. Fails with `invalid_input` if the model cannot be cut.
Result<Supernet> cut_into_blocks(const graph::Graph& model, double granularity);

/// Cuts and adds branches. Blocks that can be shrunk or that stand beside one of their kind become
/// elastic, the others stay as they are. Shares of which rounding makes the same number of channels
/// give one branch; a merged branch is there where one of the blocks has the shapes that are needed
/// or can be given them. Where it stands for `merge` neighbours, it comes with a share of its inner
/// channels, too: the quickest way past these blocks. Fails with `invalid_input`, saying what is
/// missing, if nothing can be made elastic, and if more blocks would be elastic than a space has
/// genes.
Result<Supernet> expand(const graph::Graph& model, const ExpandOptions& options = {});

}  // namespace fleetfit::elastic
