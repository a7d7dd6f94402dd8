#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

/// Which ends of a block may change their number of channels.
enum class FreeEnd : std::uint8_t { none, input, output };

/// Says which positions along which axes of a network's tensors stand and fall together: a channel
/// of a convolution's output, the batch norm's parameters for it, the slice of the next
/// convolution's weights that reads it. Such positions are of one class. Classes that no operator
/// can do without, such as those of pixels, are pinned.
class Channels {
 public:
  Channels(const Graph& graph, FreeEnd free);

  /// The class of each position along an axis, in order.
  std::vector<int> axis(TensorId tensor, std::size_t axis) const;
  bool is_pinned(int class_of) const { return pinned_[static_cast<std::size_t>(class_of)]; }

  // What operators say; for ChannelLinks.
  int extent(TensorId tensor, std::size_t axis) const;
  std::size_t rank(TensorId tensor) const;
  int at(TensorId tensor, std::size_t axis, int position) const;
  void unite(int a, int b);
  void pin(TensorId tensor, std::size_t axis);
  void pin_all(TensorId tensor);
  bool all_pinned(TensorId tensor, std::size_t axis) const;

 private:
  int root(int element) const;
  void start(const Graph& graph, FreeEnd free);

  std::vector<std::vector<int>> first_;    // by tensor: the first element of each axis
  std::vector<std::vector<int>> extents_;  // by tensor
  mutable std::vector<int> parent_;        // of each element; shortened when walked
  std::vector<bool> pinned_;               // by root
};

/// A place where classes occur.
using TensorAxis = std::pair<TensorId, std::size_t>;

/// Classes that occur at just the same places, such as all channels between two convolutions.
struct ChannelGroup {
  std::vector<int> classes = {};
  std::vector<TensorAxis> places = {};
  int channels_each = 1;  ///< positions that a class takes of an axis
};

/// The groups that are neither pinned nor only within a gate (the small network of a
/// squeeze-excite): what a block can be shrunk by.
std::vector<ChannelGroup> shrinkable_groups(const Graph& graph, const Channels& channels);

}  // namespace fleetfit::graph
