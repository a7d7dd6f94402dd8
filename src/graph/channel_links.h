#pragma once

#include <optional>
#include <set>
#include <vector>

#include "fleetfit/graph/channels.h"

namespace fleetfit::graph {

/// Convolutions (by number of their node) whose groups each lose the same positions, rather than
/// losing whole groups.
using ThinnedGroups = std::set<std::size_t>;

/// Tells the channels what a node ties together.
void link_node(const Graph& graph, std::size_t node, const ThinnedGroups& thinned,
               Channels& channels);

/// An axis counted from either end, as an index.
inline std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

/// The words in which an operator says what of its operands and results is lost together. All
/// shapes of the node are known.
class ChannelLinks {
 public:
  ChannelLinks(const Node& node, bool thins_groups, Channels& channels)
      : node_(node), thins_groups_(thins_groups), channels_(channels) {}

  const Node& node() const { return node_; }
  bool thins_groups() const { return thins_groups_; }
  TensorId in(std::size_t i) const { return node_.inputs[i]; }
  bool has(std::size_t i) const { return i < node_.inputs.size() && in(i) != kNoTensor; }
  TensorId out() const { return node_.outputs[0]; }
  std::size_t rank(TensorId t) const { return channels_.rank(t); }
  int extent(TensorId t, std::size_t axis) const { return channels_.extent(t, axis); }
  std::size_t channel_axis_of(TensorId t, Layout layout) const {
    return layout == Layout::nchw ? 1 : rank(t) - 1;
  }

  // Nothing is lost of these.
  void pin(TensorId t, std::size_t axis) { channels_.pin(t, axis); }
  void pin_all(TensorId t) { channels_.pin_all(t); }
  void pin_input(std::size_t i) { channels_.pin_all(node_.inputs[i]); }
  void pin_node();
  void pin_but(TensorId t, const std::vector<std::size_t>& kept);

  // Positions, axes and tensors that go together.
  void unite(TensorId t, std::size_t a, int i, TensorId u, std::size_t b, int j) {
    channels_.unite(channels_.at(t, a, i), channels_.at(u, b, j));
  }
  void same(TensorId t, std::size_t a, TensorId u, std::size_t b);
  void same_or_one(TensorId t, std::size_t a, std::size_t out_axis);
  /// All axes but one are the same in both.
  void same_but(TensorId t, TensorId u, std::size_t axis);
  void same_where_equal();
  void keep_shape();
  void broadcast(TensorId t);
  void broadcast_all();
  /// The shape is kept, and all further inputs have one value for each channel.
  void normalize(std::size_t channel);
  void pool(Layout layout);
  /// All axes but one of the first input are those of the part, which lacks that one.
  void drop_axis(TensorId part, std::size_t axis);
  /// Axes that were split or merged are found by their products.
  void reshape();

  /// Each of the groups has the positions of `pattern`, so that all lose the same ones.
  void repeat(TensorId t, std::size_t axis, TensorId pattern, std::size_t pattern_axis);
  void repeat(TensorId t, std::size_t axis, int groups);
  /// What goes in and out of a group goes together.
  void unite_groups(TensorId x, TensorId y, std::size_t axis, int groups);

 private:
  using Axes = std::vector<std::size_t>;

  Axes long_axes(TensorId t);
  void tie(const Axes& from, const Axes& to);
  void tie_one(TensorId one, std::size_t axis, TensorId many, const Axes& axes, std::size_t chosen);
  std::optional<std::size_t> unpinned(const Axes& from) const;

  const Node& node_;
  bool thins_groups_;
  Channels& channels_;
};

/// What is said with one word, for the table of operators.
template <auto word>
void linked(const Operator&, ChannelLinks& links) {
  (links.*word)();
}

}  // namespace fleetfit::graph
