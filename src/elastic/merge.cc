#include "elastic/merge.h"

#include <algorithm>
#include <set>

#include "fleetfit/cost/cost.h"
#include "fleetfit/graph/channels.h"
#include "fleetfit/graph/reindex.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::elastic {
namespace {

using graph::Channels;
using graph::FreeEnd;
using graph::Graph;
using graph::Positions;
using graph::Shape;
using graph::TensorId;

const Shape& input_shape(const Graph& block) { return *block.tensor(block.inputs[0]).shape; }
const Shape& output_shape(const Graph& block) { return *block.tensor(block.outputs[0]).shape; }

/// Channels are behind the batch in images that are channels first, else at the end.
std::size_t channel_axis(const Graph& block, const Shape& shape) {
  const bool channels_last = std::ranges::any_of(block.nodes, [](const graph::Node& node) {
    const auto* conv = std::get_if<graph::Conv>(&node.op);
    return conv != nullptr && conv->layout == graph::Layout::nhwc;
  });
  return shape.size() > 3 && !channels_last ? 1 : shape.size() - 1;
}

/// Puts other positions in the place of a run of classes, wherever the run stands.
std::optional<Positions> replace_run(const Graph& block, const Channels& channels,
                                     const std::vector<int>& run, std::size_t new_length) {
  const std::set<int> members(run.begin(), run.end());
  if (members.size() != run.size()) return std::nullopt;
  Positions positions;
  for (std::size_t t = 0; t < block.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    for (std::size_t a = 0; a < channels.rank(id); ++a) {
      const auto classes = channels.axis(id, a);
      const auto first = std::ranges::find_if(classes, [&](int c) { return members.contains(c); });
      if (first == classes.end()) continue;
      const auto start = first - classes.begin();
      const auto count = std::ranges::count_if(classes, [&](int c) { return members.contains(c); });
      if (static_cast<std::size_t>(count) != run.size() ||
          !std::equal(run.begin(), run.end(), first))
        return std::nullopt;
      auto& kept = positions[{id, a}];
      for (int i = 0; i < start; ++i) kept.push_back(i);
      for (std::size_t i = 0; i < new_length; ++i)
        kept.push_back(static_cast<int>(start) + static_cast<int>(i % run.size()));
      for (auto i = start + static_cast<std::ptrdiff_t>(run.size());
           i < static_cast<std::ptrdiff_t>(classes.size()); ++i)
        kept.push_back(static_cast<int>(i));
    }
  }
  return positions;
}

/// The classes along the axis that can change their number.
std::vector<int> free_classes(const Channels& channels, TensorId id, std::size_t axis) {
  auto classes = channels.axis(id, axis);
  std::erase_if(classes, [&](int c) { return channels.is_pinned(c); });
  return classes;
}

/// The block with another number of channels at one of its ends.
std::optional<Graph> with_channels(const Graph& block, FreeEnd end, std::int64_t wanted) {
  const TensorId id = end == FreeEnd::input ? block.inputs[0] : block.outputs[0];
  const auto& shape = *block.tensor(id).shape;
  const std::size_t axis = channel_axis(block, shape);
  if (shape[axis] == wanted) return block;
  const Channels channels(block, end);
  const auto run = free_classes(channels, id, axis);
  const auto length = static_cast<std::int64_t>(run.size()) + wanted - shape[axis];
  if (run.empty() || length < 1) return std::nullopt;
  const auto positions = replace_run(block, channels, run, static_cast<std::size_t>(length));
  if (!positions) return std::nullopt;
  auto changed = reindexed(block, *positions);
  if (!changed) return std::nullopt;
  return std::move(*changed);
}

bool has_steps(const graph::Node& node) {
  const auto* conv = std::get_if<graph::Conv>(&node.op);
  return conv != nullptr && std::ranges::any_of(conv->window.strides, [](auto s) { return s > 1; });
}

/// Makes the steps of the block's convolutions larger: of those that have steps, else of those that
/// read the input.
void multiply_strides(Graph& block, std::int64_t factor) {
  const bool any_steps = std::ranges::any_of(block.nodes, has_steps);
  for (auto& node : block.nodes) {
    auto* conv = std::get_if<graph::Conv>(&node.op);
    if (conv == nullptr) continue;
    if (any_steps ? !has_steps(node) : node.inputs[0] != block.inputs[0]) continue;
    for (auto& stride : conv->window.strides) stride *= factor;
  }
}

/// The block for a larger image; `input` has the block's channels.
std::optional<Graph> with_image(const Graph& block, const Shape& input) {
  const Shape& before = input_shape(block);
  if (before == input) return block;
  if (input.size() != 4 || before.size() != 4) return std::nullopt;
  const std::size_t axis = channel_axis(block, input);
  const std::size_t height = axis == 1 ? 2 : 1;
  if (before[height] == 0 || before[height + 1] == 0) return std::nullopt;
  const std::int64_t factor = input[height] / before[height];
  if (factor < 2 || input[height + 1] / before[height + 1] != factor) return std::nullopt;
  Graph larger = block;
  *larger.tensor(larger.inputs[0]).shape = input;
  multiply_strides(larger, factor);
  if (!graph::infer_shapes(larger)) return std::nullopt;
  return larger;
}

cost::NodeCost cost_of(const Graph& block) {
  const auto cost = cost::count_cost(block);
  return cost ? cost->total : cost::NodeCost{};
}

/// A merged block has to be worth it.
bool saves_work(const Graph& graph, std::span<const Graph* const> replaced) {
  constexpr double kMostShare = 0.9;
  std::int64_t flops = 0;
  for (const Graph* block : replaced) flops += cost_of(*block).flops;
  return static_cast<double>(cost_of(graph).flops) <= kMostShare * static_cast<double>(flops);
}

bool has_image_input(const Graph& block) {
  constexpr std::int64_t kMostColours = 4;
  const Shape& shape = input_shape(block);
  return shape.size() == 4 && shape[channel_axis(block, shape)] <= kMostColours;
}

}  // namespace

std::optional<Graph> fitted(const Graph& block, const Shape& input, const Shape& output) {
  if (input.size() != input_shape(block).size() || output.size() != output_shape(block).size())
    return std::nullopt;
  auto graph = with_channels(block, FreeEnd::input, input[channel_axis(block, input)]);
  if (graph) graph = with_channels(*graph, FreeEnd::output, output[channel_axis(block, output)]);
  if (graph) graph = with_image(*graph, input);
  if (!graph || input_shape(*graph) != input || output_shape(*graph) != output) return std::nullopt;
  return graph;
}

std::optional<Graph> merged(std::span<const Graph* const> blocks) {
  const Shape& input = input_shape(*blocks.front());
  const Shape& output = output_shape(*blocks.back());
  std::vector<const Graph*> by_size(blocks.begin(), blocks.end());
  std::ranges::stable_sort(by_size, std::greater<>(),
                           [](const Graph* b) { return cost_of(*b).params; });
  const auto fits = [&](const Graph* block) {
    return input_shape(*block) == input && output_shape(*block) == output;
  };
  const auto whole = std::ranges::find_if(by_size, fits);
  if (whole != by_size.end()) return **whole;
  if (has_image_input(*blocks.front())) return std::nullopt;  // colours are not like channels
  for (const Graph* block : by_size) {
    if (output_shape(*block) != output && input_shape(*block) != input) continue;
    auto graph = fitted(*block, input, output);
    if (graph && saves_work(*graph, blocks)) return graph;
  }
  return std::nullopt;
}

}  // namespace fleetfit::elastic
