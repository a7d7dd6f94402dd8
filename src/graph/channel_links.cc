#include "graph/channel_links.h"

#include <algorithm>
#include <numeric>

#include "graph/operators/traits.h"

namespace fleetfit::graph {
namespace {

bool has_shapes(const Graph& graph, const Node& node) {
  const auto known = [&](TensorId id) {
    return id == kNoTensor || (graph.tensor(id).shape && !graph.tensor(id).quantization);
  };
  return !node.outputs.empty() && std::ranges::all_of(node.inputs, known) &&
         std::ranges::all_of(node.outputs, known);
}

}  // namespace

void link_node(const Graph& graph, std::size_t node, const ThinnedGroups& thinned,
               Channels& channels) {
  const Node& linked = graph.nodes[node];
  ChannelLinks links(linked, thinned.contains(node), channels);
  const auto link = traits(linked.op).link;
  if (link == nullptr || !has_shapes(graph, linked)) return links.pin_node();
  link(linked.op, links);
}

void ChannelLinks::pin_node() {
  for (const auto id : node_.inputs) pin_all(id);
  for (const auto id : node_.outputs) pin_all(id);
}

void ChannelLinks::pin_but(TensorId t, const std::vector<std::size_t>& kept) {
  for (std::size_t a = 0; a < rank(t); ++a) {
    if (std::ranges::find(kept, a) == kept.end()) pin(t, a);
  }
}

void ChannelLinks::same(TensorId t, std::size_t a, TensorId u, std::size_t b) {
  if (extent(t, a) != extent(u, b)) {
    pin(t, a);
    pin(u, b);
    return;
  }
  for (int i = 0; i < extent(t, a); ++i) unite(t, a, i, u, b, i);
}

void ChannelLinks::same_or_one(TensorId t, std::size_t a, std::size_t out_axis) {
  if (extent(t, a) == 1) return pin(t, a);
  same(t, a, out(), out_axis);
}

void ChannelLinks::same_but(TensorId t, TensorId u, std::size_t axis) {
  for (std::size_t a = 0; a < rank(t); ++a) {
    if (a != axis) same(t, a, u, a);
  }
}

void ChannelLinks::keep_shape() {
  if (rank(in(0)) != rank(out())) return pin_node();
  for (std::size_t a = 0; a < rank(out()); ++a) same(in(0), a, out(), a);
}

void ChannelLinks::same_where_equal() {
  if (rank(in(0)) != rank(out())) return pin_node();
  for (std::size_t a = 0; a < rank(out()); ++a) same(in(0), a, out(), a);
  for (std::size_t i = 1; i < node_.inputs.size(); ++i) pin_input(i);
}

void ChannelLinks::broadcast(TensorId t) {
  const std::size_t shift = rank(out()) - rank(t);
  for (std::size_t a = 0; a < rank(t); ++a) same_or_one(t, a, a + shift);
}

void ChannelLinks::broadcast_all() {
  for (const auto id : node_.inputs) broadcast(id);
}

void ChannelLinks::normalize(std::size_t channel) {
  keep_shape();
  for (std::size_t i = 1; i < node_.inputs.size(); ++i) same(out(), channel, in(i), 0);
}

void ChannelLinks::pool(Layout layout) {
  if (node_.outputs.size() > 1) return pin_node();
  const std::size_t channel = channel_axis_of(in(0), layout);
  same(in(0), 0, out(), 0);
  same(in(0), channel, out(), channel);
  for (const TensorId t : {in(0), out()}) pin_but(t, {0, channel});
}

void ChannelLinks::repeat(TensorId t, std::size_t axis, TensorId pattern,
                          std::size_t pattern_axis) {
  const int each = extent(pattern, pattern_axis);
  for (int i = 0; i < extent(t, axis); ++i) unite(t, axis, i, pattern, pattern_axis, i % each);
}

void ChannelLinks::repeat(TensorId t, std::size_t axis, int groups) {
  const int each = extent(t, axis) / groups;
  for (int i = each; i < extent(t, axis); ++i) unite(t, axis, i, t, axis, i % each);
}

void ChannelLinks::unite_groups(TensorId x, TensorId y, std::size_t axis, int groups) {
  for (const TensorId t : {x, y}) {
    const int each = extent(t, axis) / groups;
    for (int i = 0; i < extent(t, axis); ++i) unite(t, axis, i, t, axis, i - i % each);
  }
  for (int g = 0; g < groups; ++g)
    unite(x, axis, g * (extent(x, axis) / groups), y, axis, g * (extent(y, axis) / groups));
}

void ChannelLinks::drop_axis(TensorId part, std::size_t axis) {
  pin(in(0), axis);
  for (std::size_t a = 0; a < rank(in(0)); ++a) {
    if (a != axis) same(in(0), a, part, a < axis ? a : a - 1);
  }
}

ChannelLinks::Axes ChannelLinks::long_axes(TensorId t) {
  std::vector<std::size_t> axes;
  for (std::size_t a = 0; a < rank(t); ++a) {
    if (extent(t, a) == 1) {
      pin(t, a);
    } else {
      axes.push_back(a);
    }
  }
  return axes;
}

void ChannelLinks::reshape() {
  const auto from = long_axes(in(0));
  const auto to = long_axes(out());
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < from.size() && j < to.size()) {
    const std::size_t first_i = i;
    const std::size_t first_j = j;
    std::int64_t a = extent(in(0), from[i++]);
    std::int64_t b = extent(out(), to[j++]);
    while (a != b) {
      if (a < b && i < from.size()) {
        a *= extent(in(0), from[i++]);
      } else if (b < a && j < to.size()) {
        b *= extent(out(), to[j++]);
      } else {
        return pin_node();
      }
    }
    tie({from.begin() + static_cast<std::ptrdiff_t>(first_i),
         from.begin() + static_cast<std::ptrdiff_t>(i)},
        {to.begin() + static_cast<std::ptrdiff_t>(first_j),
         to.begin() + static_cast<std::ptrdiff_t>(j)});
  }
  for (std::size_t k = 1; k < node_.inputs.size(); ++k) {
    if (has(k)) pin_input(k);
  }
}

void ChannelLinks::tie(const Axes& from, const Axes& to) {
  if (from.size() == 1 && to.size() == 1) return same(in(0), from[0], out(), to[0]);
  if (from.size() == 1) {
    // Channels of an image are split to be shuffled, features of a token into heads.
    const bool shuffles = rank(in(0)) == 4 && rank(out()) == 5;
    return tie_one(in(0), from[0], out(), to, to.size() - (shuffles ? 1 : 2));
  }
  if (to.size() == 1) {
    const auto chosen = unpinned(from);
    if (chosen) return tie_one(out(), to[0], in(0), from, *chosen);
  }
  for (const auto a : from) pin(in(0), a);
  for (const auto a : to) pin(out(), a);
}

std::optional<std::size_t> ChannelLinks::unpinned(const Axes& from) const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (channels_.all_pinned(in(0), from[i])) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

/// One axis is the product of many; the positions of one of those tell which stay.
void ChannelLinks::tie_one(TensorId one, std::size_t axis, TensorId many, const Axes& axes,
                           std::size_t chosen) {
  int inner = 1;
  for (std::size_t i = chosen + 1; i < axes.size(); ++i) inner *= extent(many, axes[i]);
  const int extent_chosen = extent(many, axes[chosen]);
  for (int i = 0; i < extent(one, axis); ++i)
    unite(one, axis, i, many, axes[chosen], i / inner % extent_chosen);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i != chosen) pin(many, axes[i]);
  }
}

}  // namespace fleetfit::graph
