#include <algorithm>

#include "graph/passes/all_passes.h"
#include "graph/passes/constants.h"
#include "graph/passes/rewriter.h"

namespace fleetfit::graph::rewrite {
namespace {

// A Transpose that swaps two neighbouring blocks of dimensions: outer x a x b x inner becomes
// outer x b x a x inner.
struct Swap {
  std::int64_t outer = 1;
  std::int64_t a = 1;
  std::int64_t b = 1;
  std::int64_t inner = 1;
};

std::int64_t extent(const Shape& shape, std::int64_t dimension) {
  return shape[static_cast<std::size_t>(dimension)];
}

// Reads the permutation as: dimensions that stay, a block from further back, the block that it
// jumps over, dimensions that stay.
std::optional<Swap> as_swap(const Shape& shape, const Ints& perm) {
  const auto rank = perm.size();
  Swap swap;
  std::size_t i = 0;
  while (i < rank && perm[i] == static_cast<std::int64_t>(i))
    swap.outer *= extent(shape, perm[i++]);
  if (i == rank) return std::nullopt;
  const auto first = static_cast<std::int64_t>(i);
  const auto jumped = perm[i] - first;
  auto expected = perm[i];
  while (i < rank && perm[i] == expected) {
    swap.b *= extent(shape, perm[i++]);
    ++expected;
  }
  for (std::int64_t d = first; d < first + jumped; ++d) {
    if (i == rank || perm[i] != d) return std::nullopt;
    swap.a *= extent(shape, perm[i++]);
  }
  for (; i < rank; ++i) {
    if (perm[i] != static_cast<std::int64_t>(i)) return std::nullopt;
    swap.inner *= extent(shape, perm[i]);
  }
  return swap;
}

std::optional<ChannelShuffle> as_shuffle(const Shape& image, const Swap& swap) {
  if (image.size() < 3 || swap.a == 1 || swap.b == 1) return std::nullopt;
  const auto channels = swap.a * swap.b;
  if (swap.outer == image[0] && channels == image[1]) return ChannelShuffle{swap.a, Layout::nchw};
  if (swap.inner == 1 && channels == image.back()) return ChannelShuffle{swap.a, Layout::nhwc};
  return std::nullopt;
}

void recognize(Rewriter& rewriter, int last) {
  const auto& graph = rewriter.graph();
  if (!std::holds_alternative<Reshape>(rewriter.node(last).op)) return;
  const auto swapped = rewriter.node(last).inputs.front();
  const int middle = rewriter.maker_of<Transpose>(swapped);
  if (middle == kNoNode || !rewriter.read_once(swapped)) return;
  const auto split = rewriter.node(middle).inputs.front();
  const int first = rewriter.maker_of<Reshape>(split);
  if (first == kNoNode || !rewriter.read_once(split)) return;
  for (const int n : {first, middle, last}) {
    if (!is_pure_move(graph, rewriter.node(n))) return;
  }
  const auto x = rewriter.node(first).inputs.front();
  if (!same_shape(graph, x, rewriter.node(last).outputs.front())) return;
  const auto& shape = *graph.tensor(split).shape;
  const auto& transpose = std::get<Transpose>(rewriter.node(middle).op);
  const auto swap = as_swap(shape, full_perm(transpose, shape.size()));
  if (!swap) return;
  const auto shuffle = as_shuffle(*graph.tensor(x).shape, *swap);
  if (!shuffle) return;
  rewriter.node(last).op = *shuffle;
  rewriter.set_inputs(last, {x});
  rewriter.remove_unread(swapped);
}

}  // namespace

Result<bool> recognize_channel_shuffle(Graph& graph) { return rewrite_nodes(graph, recognize); }

}  // namespace fleetfit::graph::rewrite
