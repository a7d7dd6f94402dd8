#include "graph/channel_links.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace fleetfit::graph {
namespace {

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

/// What a node's operator ties together, one call for each kind.
class Links {
 public:
  Links(const Graph& graph, std::size_t node, const ThinnedGroups& thinned, Channels& channels)
      : graph_(graph),
        node_(graph.nodes[node]),
        thins_groups_(thinned.contains(node)),
        channels_(channels) {}

  void link() {
    if (!has_shapes()) return pin_node();
    std::visit([this](const auto& op) { (*this)(op); }, node_.op);
  }

  void operator()(const Conv& op) {
    const TensorId x = in(0);
    const TensorId w = in(1);
    const std::size_t channel = channel_axis_of(x, op.layout);
    const std::size_t weight_in = op.layout == Layout::nchw ? 1 : rank(w) - 1;
    same(x, 0, out(), 0);
    for (const TensorId t : {x, out()}) pin_but(t, {0, channel});
    pin_but(w, {0, weight_in});
    same(out(), channel, w, 0);
    if (has(2)) same(out(), channel, in(2), 0);
    if (op.groups == 1) return same(x, channel, w, weight_in);
    const int groups = static_cast<int>(op.groups);
    if (thins_groups_) {
      repeat(x, channel, w, weight_in);
      return repeat(out(), channel, groups);
    }
    channels_.pin(w, weight_in);
    unite_groups(x, out(), channel, groups);
  }

  void operator()(const ConvTranspose& op) {
    if (op.groups != 1 || op.layout != Layout::nchw) return pin_node();
    same(in(0), 0, out(), 0);
    for (const TensorId t : {in(0), out()}) pin_but(t, {0, 1});
    pin_but(in(1), {0, 1});
    same(in(0), 1, in(1), 0);
    same(out(), 1, in(1), 1);
    if (has(2)) same(out(), 1, in(2), 0);
  }

  void operator()(const Gemm& op) {
    const std::size_t k = op.trans_b ? 1 : 0;
    const std::size_t last = rank(in(0)) - 1;
    const bool fits = !op.trans_a && rank(in(0)) == rank(out()) && rank(in(1)) == 2 &&
                      extent(in(0), last) == extent(in(1), k);
    if (!fits) return pin_node();
    for (std::size_t a = 0; a < last; ++a) same(in(0), a, out(), a);
    same(in(0), last, in(1), k);
    same(out(), last, in(1), 1 - k);
    if (has(2)) broadcast(in(2));
  }

  void operator()(const MatMul& op) {
    const std::size_t a_rank = rank(in(0));
    const std::size_t b_rank = rank(in(1));
    if (a_rank < 2 || b_rank < 2) return pin_node();
    const std::size_t out_rank = rank(out());
    const std::size_t a_rows = a_rank - (op.trans_a ? 1 : 2);
    const std::size_t a_columns = a_rank - (op.trans_a ? 2 : 1);
    const std::size_t b_rows = b_rank - (op.trans_b ? 1 : 2);
    const std::size_t b_columns = b_rank - (op.trans_b ? 2 : 1);
    same(in(0), a_columns, in(1), b_rows);
    same(in(0), a_rows, out(), out_rank - 2);
    same(in(1), b_columns, out(), out_rank - 1);
    for (std::size_t a = 0; a + 2 < a_rank; ++a) same_or_one(in(0), a, a + out_rank - a_rank);
    for (std::size_t b = 0; b + 2 < b_rank; ++b) same_or_one(in(1), b, b + out_rank - b_rank);
  }

  void operator()(const BatchNorm& op) { normalize(channel_axis_of(in(0), op.layout)); }
  void operator()(const InstanceNorm&) { normalize(1); }

  void operator()(const LayerNorm& op) {
    if (node_.outputs.size() > 1) return pin_node();
    keep_shape();
    for (std::size_t a = axis_of(op.axis, rank(out())); a < rank(out()); ++a)
      channels_.pin(out(), a);
    for (std::size_t i = 1; i < node_.inputs.size(); ++i) pin_input(i);
  }

  void operator()(const Pool& op) { pool(op.layout); }
  void operator()(const GlobalPool& op) { pool(op.layout); }

  void operator()(const Softmax& op) {
    keep_shape();
    const std::size_t first = axis_of(op.axis, rank(out()));
    const std::size_t end = op.to_end ? rank(out()) : first + 1;
    for (std::size_t a = first; a < end; ++a) channels_.pin(out(), a);
  }

  void operator()(const Activate&) { keep_shape(); }
  void operator()(const Unary&) { keep_shape(); }
  void operator()(const Cast&) { keep_shape(); }
  void operator()(const Identity&) { keep_shape(); }
  void operator()(const Dropout&) { keep_shape(); }
  void operator()(const PRelu&) { broadcast_all(); }
  void operator()(const Elementwise&) { broadcast_all(); }
  void operator()(const Where&) { broadcast_all(); }
  void operator()(const ShapeOf&) { channels_.pin_all(out()); }

  void operator()(const Concat& op) {
    const std::size_t axis = axis_of(op.axis, rank(out()));
    int offset = 0;
    for (const TensorId part : node_.inputs) {
      same_but(part, out(), axis);
      for (int i = 0; i < extent(part, axis); ++i) unite(part, axis, i, out(), axis, offset + i);
      offset += extent(part, axis);
    }
  }

  void operator()(const Split& op) {
    const std::size_t axis = axis_of(op.axis, rank(in(0)));
    int offset = 0;
    for (const TensorId part : node_.outputs) {
      if (part == kNoTensor) return pin_node();
      same_but(in(0), part, axis);
      for (int i = 0; i < extent(part, axis); ++i) unite(in(0), axis, offset + i, part, axis, i);
      offset += extent(part, axis);
    }
    if (has(1)) pin_input(1);
  }

  void operator()(const Slice& op) {
    if (!op.squeezed.empty()) return pin_node();
    // Which positions are taken is left to the indices: only axes that stay whole can shrink.
    for (std::size_t a = 0; a < rank(out()); ++a) {
      if (extent(in(0), a) == extent(out(), a)) {
        same(in(0), a, out(), a);
      } else {
        channels_.pin(in(0), a);
        channels_.pin(out(), a);
      }
    }
  }

  void operator()(const Pad&) { same_where_equal(); }

  void operator()(const Resize&) {
    if (has(3)) return pin_node();
    same_where_equal();
  }

  void operator()(const Transpose& op) {
    for (std::size_t a = 0; a < rank(out()); ++a) {
      const auto from = op.perm.empty() ? rank(out()) - 1 - a : axis_of(op.perm[a], rank(in(0)));
      same(in(0), from, out(), a);
    }
  }

  void operator()(const Reshape&) { reshape(); }
  void operator()(const Flatten&) { reshape(); }
  void operator()(const Squeeze&) { reshape(); }
  void operator()(const Unsqueeze&) { reshape(); }

  void operator()(const Gather& op) {
    if (rank(in(1)) != 0) return pin_node();
    drop_axis(out(), axis_of(op.axis, rank(in(0))));
  }

  void operator()(const Unstack& op) {
    for (const TensorId part : node_.outputs) {
      if (part != kNoTensor) drop_axis(part, axis_of(op.axis, rank(in(0))));
    }
  }

  void operator()(const Reduce& op) {
    std::vector<bool> reduced(rank(in(0)), op.axes.empty());
    for (const auto axis : op.axes) reduced[axis_of(axis, rank(in(0)))] = true;
    std::size_t to = 0;
    for (std::size_t a = 0; a < rank(in(0)); ++a) {
      if (reduced[a]) {
        channels_.pin(in(0), a);
        if (op.keep_dims) channels_.pin(out(), to++);
      } else {
        same(in(0), a, out(), to++);
      }
    }
  }

  void operator()(const ChannelShuffle& op) {
    const std::size_t axis = channel_axis_of(in(0), op.layout);
    same_but(in(0), out(), axis);
    const int groups = static_cast<int>(op.groups);
    const int each = extent(out(), axis) / groups;
    repeat(in(0), axis, groups);
    for (int g = 0; g < groups; ++g) {
      for (int i = 0; i < each; ++i) unite(in(0), axis, g * each + i, out(), axis, i * groups + g);
    }
  }

  template <class Op>
  void operator()(const Op&) {
    pin_node();
  }

 private:
  TensorId in(std::size_t i) const { return node_.inputs[i]; }
  bool has(std::size_t i) const { return i < node_.inputs.size() && in(i) != kNoTensor; }
  TensorId out() const { return node_.outputs[0]; }
  std::size_t rank(TensorId t) const { return channels_.rank(t); }
  int extent(TensorId t, std::size_t axis) const { return channels_.extent(t, axis); }
  std::size_t channel_axis_of(TensorId t, Layout layout) const {
    return layout == Layout::nchw ? 1 : rank(t) - 1;
  }

  bool has_shapes() const {
    const auto known = [&](TensorId id) {
      return id == kNoTensor || (graph_.tensor(id).shape && !graph_.tensor(id).quantization);
    };
    return !node_.outputs.empty() && std::ranges::all_of(node_.inputs, known) &&
           std::ranges::all_of(node_.outputs, known);
  }

  void pin_node() {
    for (const auto id : node_.inputs) channels_.pin_all(id);
    for (const auto id : node_.outputs) channels_.pin_all(id);
  }
  void pin_input(std::size_t i) { channels_.pin_all(node_.inputs[i]); }

  void pin_but(TensorId t, const std::vector<std::size_t>& kept) {
    for (std::size_t a = 0; a < rank(t); ++a) {
      if (std::ranges::find(kept, a) == kept.end()) channels_.pin(t, a);
    }
  }

  void unite(TensorId t, std::size_t a, int i, TensorId u, std::size_t b, int j) {
    channels_.unite(channels_.at(t, a, i), channels_.at(u, b, j));
  }

  void same(TensorId t, std::size_t a, TensorId u, std::size_t b) {
    if (extent(t, a) != extent(u, b)) {
      channels_.pin(t, a);
      channels_.pin(u, b);
      return;
    }
    for (int i = 0; i < extent(t, a); ++i) unite(t, a, i, u, b, i);
  }

  void same_or_one(TensorId t, std::size_t a, std::size_t out_axis) {
    if (extent(t, a) == 1) return channels_.pin(t, a);
    same(t, a, out(), out_axis);
  }

  /// All axes but one are the same in both.
  void same_but(TensorId t, TensorId u, std::size_t axis) {
    for (std::size_t a = 0; a < rank(t); ++a) {
      if (a != axis) same(t, a, u, a);
    }
  }

  void keep_shape() {
    if (rank(in(0)) != rank(out())) return pin_node();
    for (std::size_t a = 0; a < rank(out()); ++a) same(in(0), a, out(), a);
  }

  void same_where_equal() {
    if (rank(in(0)) != rank(out())) return pin_node();
    for (std::size_t a = 0; a < rank(out()); ++a) same(in(0), a, out(), a);
    for (std::size_t i = 1; i < node_.inputs.size(); ++i) pin_input(i);
  }

  void broadcast(TensorId t) {
    const std::size_t shift = rank(out()) - rank(t);
    for (std::size_t a = 0; a < rank(t); ++a) same_or_one(t, a, a + shift);
  }

  void broadcast_all() {
    for (const auto id : node_.inputs) broadcast(id);
  }

  void normalize(std::size_t channel) {
    keep_shape();
    for (std::size_t i = 1; i < node_.inputs.size(); ++i) same(out(), channel, in(i), 0);
  }

  void pool(Layout layout) {
    if (node_.outputs.size() > 1) return pin_node();
    const std::size_t channel = channel_axis_of(in(0), layout);
    same(in(0), 0, out(), 0);
    same(in(0), channel, out(), channel);
    for (const TensorId t : {in(0), out()}) pin_but(t, {0, channel});
  }

  /// Each of the groups has the positions of `pattern`, so that all lose the same ones.
  void repeat(TensorId t, std::size_t axis, TensorId pattern, std::size_t pattern_axis) {
    const int each = extent(pattern, pattern_axis);
    for (int i = 0; i < extent(t, axis); ++i) unite(t, axis, i, pattern, pattern_axis, i % each);
  }
  void repeat(TensorId t, std::size_t axis, int groups) {
    const int each = extent(t, axis) / groups;
    for (int i = each; i < extent(t, axis); ++i) unite(t, axis, i, t, axis, i % each);
  }

  /// What goes in and out of a group goes together.
  void unite_groups(TensorId x, TensorId y, std::size_t axis, int groups) {
    for (const TensorId t : {x, y}) {
      const int each = extent(t, axis) / groups;
      for (int i = 0; i < extent(t, axis); ++i) unite(t, axis, i, t, axis, i - i % each);
    }
    for (int g = 0; g < groups; ++g)
      unite(x, axis, g * (extent(x, axis) / groups), y, axis, g * (extent(y, axis) / groups));
  }

  void drop_axis(TensorId part, std::size_t axis) {
    channels_.pin(in(0), axis);
    for (std::size_t a = 0; a < rank(in(0)); ++a) {
      if (a != axis) same(in(0), a, part, a < axis ? a : a - 1);
    }
  }

  std::vector<std::size_t> long_axes(TensorId t) const {
    std::vector<std::size_t> axes;
    for (std::size_t a = 0; a < rank(t); ++a) {
      if (extent(t, a) == 1) {
        channels_.pin(t, a);
      } else {
        axes.push_back(a);
      }
    }
    return axes;
  }

  /// Axes that were split or merged are found by their products.
  void reshape() {
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

  using Axes = std::vector<std::size_t>;

  void tie(const Axes& from, const Axes& to) {
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
    for (const auto a : from) channels_.pin(in(0), a);
    for (const auto a : to) channels_.pin(out(), a);
  }

  std::optional<std::size_t> unpinned(const Axes& from) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (channels_.all_pinned(in(0), from[i])) continue;
      if (found) return std::nullopt;
      found = i;
    }
    return found;
  }

  /// One axis is the product of many; the positions of one of those tell which stay.
  void tie_one(TensorId one, std::size_t axis, TensorId many, const Axes& axes,
               std::size_t chosen) {
    int inner = 1;
    for (std::size_t i = chosen + 1; i < axes.size(); ++i) inner *= extent(many, axes[i]);
    const int extent_chosen = extent(many, axes[chosen]);
    for (int i = 0; i < extent(one, axis); ++i)
      unite(one, axis, i, many, axes[chosen], i / inner % extent_chosen);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (i != chosen) channels_.pin(many, axes[i]);
    }
  }

  const Graph& graph_;
  const Node& node_;
  bool thins_groups_;
  Channels& channels_;
};

}  // namespace

void link_node(const Graph& graph, std::size_t node, const ThinnedGroups& thinned,
               Channels& channels) {
  Links(graph, node, thinned, channels).link();
}

}  // namespace fleetfit::graph
