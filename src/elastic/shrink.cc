#include "elastic/shrink.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "elastic/channels.h"
#include "elastic/reindex.h"

namespace fleetfit::elastic {
namespace {

using graph::DType;
using graph::Graph;
using graph::TensorId;

constexpr int kQuickMultiple = 8;
constexpr int kSmallMultiple = 4;

/// Norms of the slices of a constant along an axis; ones for types other than float.
std::vector<double> slice_norms(const graph::Tensor& tensor, std::size_t axis) {
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
  void count(const graph::Node& node) {
    const auto* norm = std::get_if<graph::BatchNorm>(&node.op);
    if (norm != nullptr) {
      multiply(node.inputs[1], 0, 1);
      return divide_by_deviation(node.inputs[4], norm->epsilon);
    }
    const bool has_weights = std::holds_alternative<graph::Conv>(node.op) ||
                             std::holds_alternative<graph::ConvTranspose>(node.op) ||
                             std::holds_alternative<graph::Gemm>(node.op) ||
                             std::holds_alternative<graph::MatMul>(node.op);
    if (!has_weights) return;
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
  const Channels channels(block, FreeEnd::none);
  const Importance importance(block, channels);
  std::set<int> dropped;
  std::set<TensorAxis> places;
  for (const auto& group : shrinkable_groups(block, channels)) {
    const auto kept = most_important(group, importance, share);
    if (kept.size() == group.classes.size()) continue;
    dropped.insert(group.classes.begin(), group.classes.end());
    for (const int c : kept) dropped.erase(c);
    places.insert(group.places.begin(), group.places.end());
  }
  if (dropped.empty()) return std::nullopt;
  Positions positions;
  for (const auto& place : places) {
    const auto classes = channels.axis(place.first, place.second);
    auto& kept = positions[place];
    for (std::size_t i = 0; i < classes.size(); ++i) {
      if (!dropped.contains(classes[i])) kept.push_back(static_cast<int>(i));
    }
  }
  auto graph = reindexed(block, positions);
  if (!graph) return std::nullopt;
  for (std::size_t i = 0; i < block.outputs.size(); ++i) {
    if (graph->tensor(graph->outputs[i]).shape != block.tensor(block.outputs[i]).shape)
      return std::nullopt;
  }
  return std::move(*graph);
}

}  // namespace fleetfit::elastic
