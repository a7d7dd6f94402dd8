#include "fleetfit/graph/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <unordered_map>

#include "fleetfit/graph/channels.h"
#include "fleetfit/graph/operator_facts.h"
#include "fleetfit/graph/reindex.h"

namespace fleetfit::graph {
namespace {

constexpr int kQuickMultiple = 8;
constexpr int kSmallMultiple = 4;

/// Norms of the slices of a constant along an axis; ones for types other than float.
std::vector<double> slice_norms(const Tensor& tensor, std::size_t axis) {
  const auto& shape = *tensor.shape;
  const auto extent = static_cast<std::size_t>(shape[axis]);
  if (tensor.dtype != DType::f32) return std::vector<double>(extent, 1);
  std::size_t inner = 1;
  for (std::size_t a = axis + 1; a < shape.size(); ++a) inner *= static_cast<std::size_t>(shape[a]);
  std::vector<double> sums(extent);
  const auto values = tensor.data->as<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    sums[i / inner % extent] += static_cast<double>(values[i]) * values[i];
  for (double& sum : sums) sum = std::sqrt(sum);
  return sums;
}

bool has_weights(const Node& node) { return is_layer(node.op); }

class Importance {
 public:
  Importance(const Graph& graph, const Channels& channels) : graph_(graph), channels_(channels) {
    for (const auto& node : graph.nodes) count(node);
  }

  /// Logarithm, up to a constant.
  double of(int class_of) const {
    const auto found = log_.find(class_of);
    return found == log_.end() ? 0 : found->second;
  }

 private:
  void count(const Node& node) {
    const auto* norm = std::get_if<BatchNorm>(&node.op);
    if (norm != nullptr) {
      multiply(node.inputs[1], 0, 1);
      return divide_by_deviation(node.inputs[4], norm->epsilon);
    }
    if (!has_weights(node)) return;
    for (std::size_t i = 0; i < 2; ++i) {
      const TensorId weights = node.inputs[i];
      for (std::size_t a = 0; a < channels_.rank(weights); ++a) multiply(weights, a, 1);
    }
  }

  void multiply(TensorId id, std::size_t axis, double power) {
    if (!graph_.tensor(id).is_constant() || channels_.all_pinned(id, axis)) return;
    add_logs(id, slice_norms(graph_.tensor(id), axis), axis, power);
  }

  void divide_by_deviation(TensorId variance, float epsilon) {
    if (!graph_.tensor(variance).is_constant() || channels_.all_pinned(variance, 0)) return;
    auto deviations = slice_norms(graph_.tensor(variance), 0);  // of one number: its size
    for (double& d : deviations) d = std::sqrt(d + static_cast<double>(epsilon));
    add_logs(variance, deviations, 0, -1);
  }

  /// A class with several positions along the axis counts all of them.
  void add_logs(TensorId id, const std::vector<double>& norms, std::size_t axis, double power) {
    constexpr double kTiny = 1e-30;
    std::unordered_map<int, double> squares;
    const auto classes = channels_.axis(id, axis);
    for (std::size_t i = 0; i < classes.size(); ++i) squares[classes[i]] += norms[i] * norms[i];
    for (const auto& [c, square] : squares) log_[c] += power * 0.5 * std::log(square + kTiny);
  }

  const Graph& graph_;
  const Channels& channels_;
  std::unordered_map<int, double> log_;
};

/// The classes of the group that stay.
std::vector<int> most_important(const ChannelGroup& group, const Importance& importance,
                                double share) {
  auto classes = group.classes;
  const auto count = static_cast<int>(classes.size());
  const int kept = kept_channels(count, share, group.channels_each);
  std::ranges::stable_sort(classes, std::greater<>(), [&](int c) { return importance.of(c); });
  classes.resize(static_cast<std::size_t>(kept));
  return classes;
}

using ShareOf = std::function<double(const ChannelGroup&)>;

/// Where the positions stay that are not of a dropped class.
Positions positions_without(const std::set<int>& dropped, const std::set<TensorAxis>& places,
                            const Channels& channels) {
  Positions positions;
  for (const auto& place : places) {
    const auto classes = channels.axis(place.first, place.second);
    auto& kept = positions[place];
    for (std::size_t i = 0; i < classes.size(); ++i) {
      if (!dropped.contains(classes[i])) kept.push_back(static_cast<int>(i));
    }
  }
  return positions;
}

/// Nothing if no channel goes.
Result<std::optional<Graph>> shrunk_by(const Graph& block, const ShareOf& share_of) {
  const Channels channels(block, FreeEnd::none);
  const Importance importance(block, channels);
  std::set<int> dropped;
  std::set<TensorAxis> places;
  for (const auto& group : shrinkable_groups(block, channels)) {
    const auto kept = most_important(group, importance, share_of(group));
    if (kept.size() == group.classes.size()) continue;
    dropped.insert(group.classes.begin(), group.classes.end());
    for (const int c : kept) dropped.erase(c);
    places.insert(group.places.begin(), group.places.end());
  }
  if (dropped.empty()) return std::nullopt;
  FLEETFIT_ASSIGN(auto graph, reindexed(block, positions_without(dropped, places, channels)));
  for (std::size_t i = 0; i < block.outputs.size(); ++i) {
    if (graph.tensor(graph.outputs[i]).shape != block.tensor(block.outputs[i]).shape)
      return fail(ErrorCode::unsupported, "an output would change its shape");
  }
  return std::optional(std::move(graph));
}

/// For each tensor, in which of `count` stretches of the network it is made; the last for what no
/// node makes.
std::vector<std::size_t> stretches_of(const Graph& network, std::size_t count) {
  const auto layers = static_cast<std::size_t>(std::ranges::count_if(network.nodes, has_weights));
  std::vector<std::size_t> stretches(network.tensors.size(), count - 1);
  std::size_t before = 0;
  for (const auto& node : network.nodes) {
    if (has_weights(node)) ++before;
    const std::size_t layer = before == 0 ? 0 : before - 1;
    for (const TensorId output : node.outputs)
      if (output != kNoTensor)
        stretches[static_cast<std::size_t>(output)] =
            std::min(count - 1, layer * count / std::max<std::size_t>(layers, 1));
  }
  return stretches;
}

}  // namespace

int kept_channels(int classes, double share, int channels_each) {
  const double exact = share * classes;
  const auto rounded_to = [&](int step) {
    return static_cast<int>(std::lround(exact / step)) * step;
  };
  int kept = static_cast<int>(std::lround(exact));
  for (const int multiple : {kQuickMultiple, kSmallMultiple}) {
    const int step = std::max(1, multiple / channels_each);  // classes that make up the multiple
    if (step * channels_each % multiple != 0 || exact < step) continue;
    kept = rounded_to(step);
    break;
  }
  return std::clamp(kept, 1, classes);
}

bool can_shrink(const Graph& block) {
  return !shrinkable_groups(block, Channels(block, FreeEnd::none)).empty();
}

std::optional<Graph> shrunk(const Graph& block, double share) {
  auto graph = shrunk_by(block, [share](const ChannelGroup&) { return share; });
  if (!graph || !*graph) return std::nullopt;
  return *std::move(graph);
}

Result<Graph> pruned(const Graph& network, std::span<const double> shares) {
  if (shares.empty()) return fail(ErrorCode::invalid_input, "there are no shares of channels");
  for (const double share : shares) {
    if (!(share > 0) || share > 1) {
      return fail(
          ErrorCode::invalid_input,
          fmt::format("{} is no share of channels: it is not above 0 and at most 1", share));
    }
  }
  if (std::ranges::all_of(shares, [](double share) { return share == 1; })) return network;
  const auto stretches = stretches_of(network, shares.size());
  FLEETFIT_ASSIGN(auto graph, shrunk_by(network, [&](const ChannelGroup& group) {
                    std::size_t first = shares.size() - 1;
                    for (const auto& [tensor, axis] : group.places)
                      first = std::min(first, stretches[static_cast<std::size_t>(tensor)]);
                    return shares[first];
                  }));
  if (!graph) return network;
  return std::move(*graph);
}

}  // namespace fleetfit::graph
